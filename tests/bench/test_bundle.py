"""The bundled text is made of paragraphs of the right size, the same each time."""

import zipfile

import pytest


@pytest.fixture
def folder(tmp_path):
    sentence = "We hold number {} of these truths to be as plain as any {}. "
    for name in ("inaugural", "state_union"):
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as archive:
            for i in range(4):
                lines = [
                    "".join(sentence.format(j, f"{name}{i}") for j in range(k, k + 1 + k % 40))
                    for k in range(60)
                ]
                text = "A HEADING\n\n" + "(Applause.) \n".join(lines)
                archive.writestr(f"{name}/{i}.txt", text)
            archive.writestr(f"{name}/bad.txt", b"caf\xe9 " * 100)
    speech = "ROMEO:\nBut soft, what light through yonder window breaks, number {}?\n\n"
    play = "".join(speech.format(i) for i in range(300))
    (tmp_path / "tinyshakespeare.txt").write_text(play)
    return tmp_path


def test_documents_have_the_right_size_and_all_works_are_there(script, folder):
    module = script("bundle")
    text = module.bundle(folder)
    lines = text.splitlines()
    assert len(lines) == len(set(lines)) > 50
    assert all(module.FEWEST <= len(line.split()) <= module.MOST for line in lines)
    works = [f"{name}{i}" for name in ("inaugural", "state_union") for i in range(4)]
    for work in [*works, "ROMEO:"]:
        assert work in text
    assert "Applause" not in text and "HEADING" not in text and "caf" not in text
    assert "  " not in text


def test_it_is_the_same_each_time_and_fits_the_room(script, folder, monkeypatch):
    module = script("bundle")
    assert module.bundle(folder) == module.bundle(folder)
    monkeypatch.setattr(module, "BYTES", 8000)
    assert 4000 < len(module.bundle(folder).encode()) <= 8000


def test_the_committed_text_is_one_that_it_could_have_made(script):
    module = script("bundle")
    text = module.OUT.read_text(encoding="utf-8")
    assert len(text.encode()) <= module.BYTES
    assert all(module.usable(line) for line in text.splitlines())

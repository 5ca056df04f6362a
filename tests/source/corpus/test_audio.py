"""Sound files, a document each."""

import numpy as np
import pytest

from isoscope.errors import DocumentError, IsoscopeError, SourceError
from isoscope.source.corpus import audio, open_corpus
from isoscope.source.corpus.audio import Transcripts, is_companion


@pytest.mark.parametrize("suffix", [".wav", ".flac", ".aiff", ".au", ".caf", ".w64"])
@pytest.mark.parametrize("channels", [1, 2, 3])
def test_files_are_mixed_down_at_the_rate_they_have(tmp_path, wav, suffix, channels):
    path = tmp_path / f"a{suffix}"
    samples = wav(path, seconds=0.2, rate=11025, channels=channels)
    document = open_corpus(path).document(0)
    assert (document.id, document.rate, document.target) == (path.name, 11025, None)
    assert document.content.dtype == np.float32 and document.place == str(path)
    np.testing.assert_allclose(document.content, samples.mean(axis=1), atol=1e-4)


@pytest.mark.parametrize("suffix", [".ogg", ".mp3"])
def test_lossy_files_are_read_too(tmp_path, wav, suffix):
    wav(tmp_path / f"a{suffix}", seconds=0.5, rate=16000)
    assert abs(len(open_corpus(tmp_path / f"a{suffix}").document(0).content) - 8000) < 2400


def test_files_longer_than_a_block_are_whole(tmp_path, wav, monkeypatch):
    samples = wav(tmp_path / "a.wav", seconds=1, rate=8000)
    whole = open_corpus(tmp_path / "a.wav").document(0).content
    monkeypatch.setattr(audio, "BLOCK", 1000)
    np.testing.assert_array_equal(open_corpus(tmp_path / "a.wav").document(0).content, whole)
    assert len(whole) == len(samples)


def test_a_folder_is_read_all_the_way_down(tmp_path, wav):
    for name in ("b.wav", "s/a.flac", "s/t/c.wav"):
        wav(tmp_path / name)
    (tmp_path / "README.md").write_text("beside")
    corpus = open_corpus(tmp_path)
    assert corpus.kind == "audio"
    assert [each.id for each in corpus] == ["b.wav", "s/a.flac", "s/t/c.wav"]


@pytest.mark.parametrize(
    ("break_it", "slug"),
    [
        (lambda path: path.write_bytes(b"no sound"), "audio-unreadable"),
        (lambda path: path.write_bytes(b""), "audio-unreadable"),
        (lambda path: path.write_bytes(path.read_bytes()[:44]), "audio-short"),
        (lambda path: patched(path, 24, (0).to_bytes(4, "little")), "audio-"),
        (lambda path: patched(path, 24, (900_000).to_bytes(4, "little")), "audio-rate"),
    ],
)
def test_a_bad_file_is_named_or_skipped(tmp_path, wav, break_it, slug):
    wav(tmp_path / "good.wav")
    wav(tmp_path / "bad.wav", seconds=2)
    break_it(tmp_path / "bad.wav")
    with pytest.raises(SourceError, match=r"bad\.wav") as caught:
        open_corpus(tmp_path)
    assert caught.value.slug.startswith(slug) and "\n" not in caught.value.problem
    corpus = open_corpus(tmp_path, skip_bad=True)
    assert [each.id for each in corpus] == ["good.wav"]
    assert "sound files that cannot be used skipped: 1" in corpus.warnings[0]


def patched(path, at, piece):
    raw = bytearray(path.read_bytes())
    raw[at : at + len(piece)] = piece
    path.write_bytes(raw)


def test_very_short_sound_is_refused(tmp_path, wav):
    wav(tmp_path / "a.wav", seconds=0.0249)
    with pytest.raises(SourceError, match=r"got 24\.9 ms") as caught:
        open_corpus(tmp_path / "a.wav")
    assert caught.value.slug == "audio-short"
    wav(tmp_path / "a.wav", seconds=0.025)
    assert len(open_corpus(tmp_path / "a.wav").document(0).content) == 200


def test_samples_that_are_not_finite_are_refused_when_they_are_read(tmp_path):
    import soundfile

    samples = np.full(800, np.nan, dtype=np.float32)
    soundfile.write(tmp_path / "a.wav", samples, 8000, subtype="FLOAT")
    corpus = open_corpus(tmp_path / "a.wav")
    with pytest.raises(SourceError, match="not finite") as caught:
        corpus.document(0)
    assert isinstance(caught.value, DocumentError)


def test_endless_sound_is_refused(tmp_path, wav, monkeypatch):
    wav(tmp_path / "a.wav", seconds=2)
    monkeypatch.setattr(audio, "MOST_SAMPLES", 8000)
    monkeypatch.setattr(audio, "BLOCK", 1000)
    with pytest.raises(SourceError) as caught:
        open_corpus(tmp_path / "a.wav").document(0)
    assert caught.value.slug == "document-too-large"


def test_a_cut_or_altered_flac_is_read_or_refused(tmp_path, wav):
    path = tmp_path / "a.flac"
    wav(path, seconds=0.3)
    raw = path.read_bytes()
    rng = np.random.default_rng(2)
    outcomes = set()
    for _ in range(120):
        broken = bytearray(raw[: rng.integers(1, len(raw) + 1)] if rng.random() < 0.5 else raw)
        broken[rng.integers(len(broken))] ^= 1 << rng.integers(8)
        path.write_bytes(broken)
        try:
            assert np.isfinite(open_corpus(path).document(0).content).all()
            outcomes.add("read")
        except IsoscopeError as error:
            outcomes.add(error.slug)
    assert "audio-unreadable" in outcomes


@pytest.fixture
def folder(tmp_path, wav):
    for name in ("a.wav", "b.wav", "sub/c.flac"):
        wav(tmp_path / name)
    return tmp_path


def said(folder):
    return {each.id: each.target for each in open_corpus(folder)}


def test_without_transcripts_there_is_no_target(folder):
    assert said(folder) == {"a.wav": None, "b.wav": None, "sub/c.flac": None}
    assert Transcripts([folder / "a.wav"], folder).stamp() is None


def test_a_text_beside_a_file_is_its_transcript(folder):
    (folder / "a.txt").write_text("hello\n")
    (folder / "sub" / "c.txt").write_text(" ")
    assert said(folder) == {"a.wav": "hello", "b.wav": None, "sub/c.flac": None}
    assert open_corpus(folder / "a.wav").document(0).target == "hello"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("transcripts.tsv", 'file_name\ttranscription\na.wav\thi "you\nsub/c.flac\tho\n'),
        ("metadata.csv", 'text,file_name\n"hi ""you",a.wav\nho,sub/c.flac\n,b.wav\n'),
        ("transcripts.tsv", 'a.wav\thi "you\nsub/c.flac\tho\n'),
        ("metadata.jsonl", '{"file_name": "a.wav", "text": "hi \\"you"}\n'
                           '{"file_name": "sub/c.flac", "text": "ho"}\n'),
        ("x.trans.txt", 'a hi "you\nsub/c ho\nnot here\n'),
    ],
)  # fmt: skip
def test_a_table_has_the_transcripts_of_a_folder(folder, name, text):
    (folder / name).write_text(text)
    assert said(folder) == {"a.wav": 'hi "you', "b.wav": None, "sub/c.flac": "ho"}


def test_a_table_speaks_for_the_folder_it_lies_in(folder):
    (folder / "sub" / "metadata.csv").write_text("file_name,text\nc.flac,ho\n../a.wav,no\n")
    assert said(folder) == {"a.wav": None, "b.wav": None, "sub/c.flac": "ho"}


@pytest.mark.parametrize("text", ["", "file_name,label\na.wav,3\n", "x\n"])
def test_a_table_of_something_else_is_left_alone(folder, text):
    (folder / "metadata.csv").write_text(text)
    (folder / "metadata.jsonl").write_text("nonsense")
    assert set(said(folder).values()) == {None}


def test_links_that_lead_out_are_not_read(folder, tmp_path_factory):
    outside = tmp_path_factory.mktemp("out") / "secret.txt"
    outside.write_text("secret")
    (folder / "a.txt").symlink_to(outside)
    assert said(folder)["a.wav"] is None


def test_other_words_are_another_fingerprint(folder):
    stamps = {open_corpus(folder).fingerprint}
    (folder / "a.txt").write_text("hello")
    stamps.add(open_corpus(folder).fingerprint)
    (folder / "a.txt").write_text("hallo")
    stamps.add(open_corpus(folder).fingerprint)
    (folder / "metadata.csv").write_text("file_name,text\nb.wav,hi\n")
    stamps.add(open_corpus(folder).fingerprint)
    assert len(stamps) == 4


def test_a_transcript_that_is_no_utf8_is_named(folder):
    (folder / "a.txt").write_bytes(b"caf\xe9")
    with pytest.raises(SourceError, match=r"a\.txt, line 1") as caught:
        said(folder)
    assert caught.value.slug == "not-utf8"


def test_tables_are_known_by_their_names():
    assert is_companion("metadata.csv") and is_companion("84-121123.trans.txt")
    assert not is_companion("corpus.csv")

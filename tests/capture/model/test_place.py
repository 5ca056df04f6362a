"""Paths are paths, names are names."""

import pytest

from isoscope.capture.model.assemble import locate, looks_like_path
from isoscope.errors import IsoscopeError


def found(where, said, revision=None):
    return locate(where, revision=revision, code=False, weights=True, say=said)


def test_a_folder_has_its_own_name(tmp_path, said, monkeypatch):
    (tmp_path / "net").mkdir()
    place = found(tmp_path / "net", said)
    assert (place.name, place.folder, place.gguf) == ("net", tmp_path / "net", None)
    monkeypatch.chdir(tmp_path / "net")
    assert found(".", said).name == "net"


def test_a_gguf_file_is_its_stem_in_its_folder(tmp_path, said):
    (tmp_path / "a.Q4.gguf").touch()
    place = found(str(tmp_path / "a.Q4.gguf"), said)
    assert (place.name, place.folder, place.gguf) == ("a.Q4", tmp_path, "a.Q4.gguf")


def test_what_exists_is_a_path_whatever_it_looks_like(tmp_path, said, monkeypatch, hub):
    (tmp_path / "lab" / "tiny").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert found("lab/tiny", said).commit is None
    assert hub.asked == said == []


def test_the_home_folder_may_be_short(tmp_path, said, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "net").mkdir()
    assert found("~/net", said).folder == tmp_path / "net"


@pytest.mark.parametrize("where", ["./a", "/a/b", "~/a", "a/b/c", "../a", "a.gguf"])
def test_what_looks_like_a_path_and_is_none_is_never_requested(where, said, hub):
    with pytest.raises(IsoscopeError, match=f"no such folder: {where}") as e:
        found(where, said)
    assert e.value.slug == "model-not-found"
    assert hub.asked == said == []


def test_a_path_object_is_never_a_name(tmp_path, said, hub, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(IsoscopeError, match="no such folder: tiny"):
        found(tmp_path.joinpath("tiny").relative_to(tmp_path), said)
    assert hub.asked == []


@pytest.mark.parametrize("where", ["gpt2", "lab/tiny", "lab/tiny@main"])
def test_names_do_not_look_like_paths(where):
    assert not looks_like_path(where)


def test_a_file_of_another_kind_is_refused(tmp_path, said):
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(IsoscopeError, match="got the file"):
        found(tmp_path / "model.safetensors", said)


def test_a_folder_has_no_revisions(tmp_path, said):
    with pytest.raises(IsoscopeError, match="cannot take revision 'main'"):
        found(tmp_path, said, revision="main")

"""Small files are read with care."""

from hashlib import sha256

import pytest

from isoscope.capture.model import folder
from isoscope.capture.model.folder import inside, read_json, read_object, sha_of_files
from isoscope.errors import IsoscopeError


def test_json_is_read(tmp_path):
    (tmp_path / "a.json").write_text('{"a": 1}')
    assert read_json(tmp_path / "a.json") == read_object(tmp_path / "a.json") == {"a": 1}


@pytest.mark.parametrize("text", ["{", "\x00", "[" * 100_000])
def test_broken_json_is_an_error_that_names_the_file(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(IsoscopeError, match=r"a\.json, got broken JSON"):
        read_json(tmp_path / "a.json")


def test_a_list_is_no_object(tmp_path):
    (tmp_path / "a.json").write_text("[]")
    with pytest.raises(IsoscopeError, match="of kind list where an object belongs"):
        read_object(tmp_path / "a.json")


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(IsoscopeError, match="No such file") as e:
        read_json(tmp_path / "a.json")
    assert e.value.slug == "model-unreadable"


def test_absurdly_large_json_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "LARGEST_JSON", 10)
    (tmp_path / "a.json").write_text("[" + " " * 20 + "]")
    with pytest.raises(IsoscopeError, match="22 bytes of JSON"):
        read_json(tmp_path / "a.json")


@pytest.mark.parametrize("name", ["../a", "b/../../a", "/etc/passwd", "..", "c:a", "a\\b", 3])
def test_names_may_not_leave_the_folder(tmp_path, name):
    with pytest.raises(IsoscopeError, match="expected names of files in the folder"):
        inside(tmp_path, name, tmp_path / "index.json")


@pytest.mark.parametrize("name", ["a", "b/a", "", "..a"])
def test_names_inside_the_folder_are_paths(tmp_path, name):
    assert inside(tmp_path, name, tmp_path / "index.json") == tmp_path / name


def test_the_sha_is_of_content_in_order_of_name(tmp_path):
    (tmp_path / "b").write_bytes(b"two")
    (tmp_path / "a").write_bytes(b"one")
    expected = sha256(b"onetwo").hexdigest()
    assert sha_of_files([tmp_path / "b", tmp_path / "a"]) == expected


def test_the_sha_of_a_file_that_is_gone_is_an_error(tmp_path):
    with pytest.raises(IsoscopeError, match="gone"):
        sha_of_files([tmp_path / "gone"])

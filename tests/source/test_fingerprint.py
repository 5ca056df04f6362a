"""Fingerprints: bounded work, and different for different content."""

import os

import pytest

from isoscope.source.bytes import PAGE, PAGES, of_file, of_parts, spread


def test_the_same_content_elsewhere_has_the_same_fingerprint(tmp_path):
    content = os.urandom(1_000_000)
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(content)
    assert of_file(tmp_path / "a") == of_file(tmp_path / "b")
    assert of_file(tmp_path / "a") != of_file(tmp_path / "a", "column")
    assert len(of_file(tmp_path / "a")) == 32


@pytest.mark.parametrize("size", [10, 5000, (PAGES + 2) * PAGE])
def test_a_small_file_is_read_whole(size, tmp_path):
    content = bytearray(os.urandom(size))
    path = tmp_path / "a"
    path.write_bytes(content)
    before = of_file(path)
    for at in (0, size // 3, size - 1):
        changed = bytearray(content)
        changed[at] ^= 1
        path.write_bytes(changed)
        assert of_file(path) != before


def test_a_large_file_is_sampled_at_both_ends_and_between(tmp_path):
    size = 10_000_000
    offsets = spread(size, PAGE)
    assert len(offsets) == PAGES + 2 and offsets[0] == 0 and offsets[-1] == size - PAGE
    path = tmp_path / "a"
    path.write_bytes(bytes(size))
    before = of_file(path)
    for at in (0, size - 1, offsets[20]):
        with path.open("r+b") as file:
            file.seek(at)
            file.write(b"x")
        assert of_file(path) != before
        before = of_file(path)
    with path.open("ab") as file:
        file.write(b"\0")
    assert of_file(path) != before


def test_parts_do_not_run_into_each_other():
    assert of_parts(["ab", "c"]) != of_parts(["a", "bc"])
    assert of_parts([b"a"]) == of_parts(["a"])

"""First bytes say what content is."""

import pytest

from isoscope.source.magic import described, wrong_kind


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"\x93NUMPY\x01", "an npy file"),
        (b"PAR1", "a parquet file"),
        (b"PK\x03\x04", "a zip archive (npz, or a torch file)"),
        (b"\x20\0\0\0\0\0\0\0{", "a safetensors file"),
        (b"hello", "something else (it begins with 68 65 6c 6c 6f)"),
        (b"", "nothing"),
    ],
)
def test_content_is_described(head, words):
    assert described(head) == words


def test_the_error_names_both():
    error = wrong_kind("v.npy", "an npy file", b"PAR1")
    assert error.problem == "expected an npy file at v.npy, got a parquet file"

"""The npy header: parsed without eval, and nothing in it believed."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope.errors import SourceError
from isoscope.source.header import read_header


def headed(text, version=1):
    raw = text.encode("latin-1")
    length = len(raw).to_bytes(2 if version == 1 else 4, "little")
    return io.BytesIO(b"\x93NUMPY" + bytes([version, 0]) + length + raw)


@given(
    shape=st.lists(st.integers(0, 2**62), max_size=5).map(tuple),
    dtype=st.sampled_from(["<f4", ">f8", "|i1", "<U12", "|S3", "<u2", "<c16"]),
    fortran=st.booleans(),
)
def test_it_reads_what_numpy_writes(shape, dtype, fortran):
    raw = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        raw, {"descr": dtype, "fortran_order": fortran, "shape": shape}
    )
    end = raw.tell()
    raw.seek(0)
    header = read_header(raw, "v.npy")
    assert (header.shape, header.dtype, header.fortran) == (shape, np.dtype(dtype), fortran)
    assert header.offset == raw.tell() == end


def test_double_quotes_and_old_integers_are_read():
    header = read_header(
        headed('{"shape": (3L, 2L), "fortran_order": True, "descr": "<f4"}'), "v.npy"
    )
    assert header.shape == (3, 2) and header.fortran and header.size == 10 + 58 + 24


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "without shape"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (3, -2)}", "without shape"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (3 4, 2)}", "the shape"),
        ("{'descr': '<q4', 'fortran_order': False, 'shape': (3, 2)}", "the type '<q4'"),
        ("{'descr': ',', 'fortran_order': False, 'shape': (3, 2)}", "the type ','"),
        ("{'descr': 'i4,i4', 'fortran_order': False, 'shape': (3, 2)}", "the type 'i4,i4'"),
        ("{'descr': '<f4', 'fortran_order': 0, 'shape': (3, 2)}", "without shape"),
        ("{'descr': '|O', 'fortran_order': False, 'shape': (3, 2)}", "a pickle"),
        ("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}", "structured"),
    ],
)
def test_other_headers_are_refused(text, words):
    with pytest.raises(SourceError, match=words):
        read_header(headed(text), "v.npy")


def test_other_content_is_named():
    with pytest.raises(SourceError, match="got a pickle"):
        read_header(io.BytesIO(b"\x80\x04abcdefg"), "v.npy")
    with pytest.raises(SourceError, match="got a zip archive"):
        read_header(io.BytesIO(b"PK\x03\x04abcdefg"), "v.npy")
    with pytest.raises(SourceError, match="version 09 00"):
        read_header(io.BytesIO(b"\x93NUMPY\x09\x00abc"), "v.npy")

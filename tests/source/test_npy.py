"""npy: mapped and streamed, in every order of bytes and axes."""

import io
import re
import resource
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from isoscope.errors import SourceError
from isoscope.source import npy, open_source
from isoscope.source.npy import ArrayHeader, map_array, map_blocks, read_header
from isoscope.source.row_source import plain_rows

matrices = hnp.arrays(
    dtype=st.one_of(
        hnp.floating_dtypes(sizes=(16, 32, 64), endianness="?"),
        hnp.integer_dtypes(endianness="?"),
        hnp.unsigned_integer_dtypes(endianness="?"),
    ),
    shape=hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=8),
)


def stored(array, *, version=None):
    content = io.BytesIO()
    np.lib.format.write_array(content, array, version=version)
    return content.getvalue()


@given(rows=matrices, fortran=st.booleans(), size=st.integers(1, 9), stream=st.booleans())
def test_what_was_saved_is_read(rows, fortran, size, stream, tmp_path_factory, whole):
    rows = np.asfortranarray(rows) if fortran else rows
    content = stored(rows)
    if stream:
        source = open_source(io.BytesIO(content))
    else:
        path = tmp_path_factory.getbasetemp() / "rows.npy"
        path.write_bytes(content)
        source = open_source(path)
    found = whole(source, size)
    wide = rows.dtype.itemsize > (4 if rows.dtype.kind == "f" else 2)
    assert found.dtype == (np.float64 if wide else np.float32) and found.dtype.isnative
    np.testing.assert_array_equal(found, rows.astype(found.dtype))


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_all_versions_of_the_header_are_read(version, whole):
    rows = np.arange(6.0).reshape(3, 2)
    source = open_source(io.BytesIO(stored(rows, version=version)))
    np.testing.assert_array_equal(whole(source), rows)


def test_long_double_becomes_double(tmp_path, whole):
    np.save(tmp_path / "v.npy", np.arange(6, dtype=np.longdouble).reshape(3, 2))
    assert whole(open_source(tmp_path / "v.npy")).dtype == np.float64


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_chunks_of_a_file_are_views_and_not_copies(dtype, tmp_path, cloud):
    np.save(tmp_path / "v.npy", cloud(dtype=dtype))
    chunk = next(open_source(tmp_path / "v.npy").chunks(10))
    assert not chunk.rows.flags.owndata and not chunk.rows.flags.writeable
    assert chunk.rows.flags.c_contiguous and type(chunk.rows) is np.ndarray


def test_a_chunk_stays_right_after_its_pages_were_given_back(tmp_path, cloud):
    rows = cloud(n=5000, d=64)
    np.save(tmp_path / "v.npy", rows)
    chunks = list(open_source(tmp_path / "v.npy").chunks(100))
    np.testing.assert_array_equal(np.concatenate([each.rows for each in chunks]), rows)


@pytest.mark.parametrize(
    ("array", "words", "slug"),
    [
        (np.ones(4), r"got 1 dimension \(4,\)", "not-two-dimensional"),
        (np.array(3.0), r"got 0 dimensions \(\)", "not-two-dimensional"),
        (np.ones((2, 3, 4)), r"got 3 dimensions \(2, 3, 4\)", "not-two-dimensional"),
        (np.ones((3, 0)), "got width 0", "width-zero"),
        (np.ones((0, 3)), "got 0 rows", "no-rows"),
        (np.ones((1, (1 << 20) + 1), dtype="b1"), "got width 1048577", "width-too-large"),
        (np.ones((2, 2), dtype=complex), "got complex numbers", "complex-numbers"),
        (np.array([["a", "b"]]), "got strings", "strings"),
        (np.array([[b"a", b"b"]]), "got strings", "strings"),
        (np.array([[1, "b"]], dtype=object), "got a pickle", "pickle"),
        (np.ones((2, 2), dtype="M8[s]"), "got the type datetime64", "dtype-unsupported"),
        (np.ones((2, 2), dtype="V2"), r"got raw bytes", "dtype-unsupported"),
        (np.ones(2, dtype=[("a", "f4")]), "got a structured array", "dtype-unsupported"),
    ],
)
def test_arrays_that_are_no_vectors_are_refused(array, words, slug, tmp_path):
    path = tmp_path / "v.npy"
    np.save(path, array, allow_pickle=True)
    with pytest.raises(SourceError, match=words) as caught:
        open_source(path)
    assert caught.value.slug == slug and "v.npy" in caught.value.problem


@pytest.mark.parametrize("cut", [1, 6, 9, 40, 127, 128, 129, 200])
def test_a_stream_that_ends_early_is_refused(cut, whole):
    content = stored(np.ones((10, 4)))
    with pytest.raises(SourceError):
        whole(open_source(io.BytesIO(content[:cut])), 3)


def test_something_behind_the_array_is_refused(tmp_path, whole):
    twice = stored(np.ones((10, 4))) * 2
    (tmp_path / "v.npy").write_bytes(twice)
    with pytest.raises(SourceError, match="expected 448 bytes") as caught:
        open_source(tmp_path / "v.npy")
    assert caught.value.slug == "file-trailing"
    with pytest.raises(SourceError, match="expected 448 bytes"):
        whole(open_source(io.BytesIO(twice)))


@pytest.mark.parametrize("shape", ["(99999999999999999999, 4)", "(4611686018427387904, 4)"])
def test_a_header_that_claims_too_much_is_not_believed(shape, tmp_path, whole):
    content = stored(np.ones((10, 4))).replace(b"(10, 4), }", f"{shape}, }}".encode())
    length = len(content) - 320
    content = content[:8] + (length - 10).to_bytes(2, "little") + content[10:]
    (tmp_path / "v.npy").write_bytes(content)
    for place in (tmp_path / "v.npy", io.BytesIO(content)):
        with pytest.raises(SourceError):
            whole(open_source(place))


def test_a_header_of_ten_megabytes_is_refused(tmp_path):
    content = b"\x93NUMPY\x02\x00" + (10_000_000).to_bytes(4, "little") + b" " * 10_000_000
    (tmp_path / "v.npy").write_bytes(content)
    with pytest.raises(SourceError, match="a header of 10000000 bytes"):
        open_source(tmp_path / "v.npy")


def test_a_large_stream_in_fortran_order_is_refused(monkeypatch, whole):
    monkeypatch.setattr(npy, "MAX_TURNED", 100)
    content = stored(np.asfortranarray(np.ones((10, 4))))
    with pytest.raises(SourceError, match="with its array in Fortran order"):
        whole(open_source(io.BytesIO(content)))


def test_an_array_has_no_columns(tmp_path, cloud):
    np.save(tmp_path / "v.npy", cloud())
    with pytest.raises(SourceError, match="cannot take a column") as caught:
        open_source(tmp_path / "v.npy", column="embedding")
    assert caught.value.slug == "no-columns"
    with pytest.raises(SourceError, match=r"one-dimensional npy .* got 'doc'"):
        open_source(tmp_path / "v.npy", document="doc")


def test_a_segment_reads_none_of_the_rows_before_it(tmp_path):
    path = tmp_path / "v.npy"
    rows = np.lib.format.open_memmap(path, "w+", np.float32, (1 << 24, 64))  # 4 GiB, sparse
    rows[-500:] = 1
    del rows
    source = open_source(path)
    last = source.segments((1 << 24) - 500)[-1]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    chunks = list(source.chunks(100, last))
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    assert [chunk.start for chunk in chunks] == [(1 << 24) - 500 + 100 * i for i in range(5)]
    assert all((chunk.rows == 1).all() for chunk in chunks)
    assert faults < 2000  # pages; the rows before have a million


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


@pytest.mark.parametrize("offset", [0, 1, 7, 64])
@pytest.mark.parametrize("fortran", [False, True])
def test_any_offset_and_order_gives_the_same_rows(offset, fortran, tmp_path, cloud):
    rows = cloud(dtype="float64")
    path = tmp_path / "raw"
    path.write_bytes(b"x" * offset + rows.tobytes("F" if fortran else "C"))
    header = ArrayHeader(rows.shape, rows.dtype, fortran, offset)
    parts = [plain_rows(block) for _, block in map_blocks(path, header, 7, place="raw")]
    np.testing.assert_array_equal(np.concatenate(parts), rows)
    some = list(map_blocks(path, header, 7, place="raw", start=11, stop=30))
    assert [at for at, _ in some] == [11, 18, 25]
    np.testing.assert_array_equal(np.concatenate([each for _, each in some]), rows[11:30])
    assert all(part.flags.aligned and part.flags.c_contiguous for part in parts)


def test_a_file_that_shrank_is_refused(tmp_path):
    path = tmp_path / "raw"
    path.write_bytes(b"x" * 10)
    with pytest.raises(SourceError, match="expected 80 bytes in raw, got 10"):
        map_array(path, ArrayHeader((5, 2), np.dtype("f8"), False, 0), place="raw")


def test_pages_that_were_read_are_unmapped(tmp_path):
    path = tmp_path / "raw"
    header = ArrayHeader((20_000, 256), np.dtype("f8"), False, 0)  # 40 MB
    with path.open("wb") as file:
        file.truncate(header.size)

    def resident():
        status = Path("/proc/self/status").read_text()
        return int(re.search(r"RssFile:\s+(\d+)", status)[1]) // 1024  # MiB

    before = resident()
    most = 0
    for _, block in map_blocks(path, header, 1000, place="raw"):
        assert block.sum() == 0
        most = max(most, resident())
    assert most - before < 20

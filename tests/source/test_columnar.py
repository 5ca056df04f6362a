"""Columnar files: arrow as files and streams, several batches, hostile offsets."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest

from isoscope.errors import RowError, SourceError
from isoscope.source import open_source


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("batch", [None, 3])
@pytest.mark.parametrize("piped", [False, True])
def test_batches_are_read(stream, fixed, batch, piped, tmp_path, cloud, write, whole):
    rows = cloud()
    path = write(tmp_path / "v.arrow", rows, fixed=fixed, stream=stream, batch=batch)
    source = open_source(io.BytesIO(path.read_bytes()) if piped else path)
    assert source.rows == (None if stream or piped else 50)
    np.testing.assert_array_equal(whole(source, 7), rows)


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_packed_batches_are_read(codec, tmp_path, cloud, table, whole):
    rows = cloud(n=500)
    path = tmp_path / "v.feather"
    pa.feather.write_feather(table(rows), str(path), compression=codec)
    np.testing.assert_array_equal(whole(open_source(path)), rows)


def test_a_tensor_of_fixed_shape_is_a_list(tmp_path, cloud, whole):
    rows = cloud()
    column = pa.FixedShapeTensorArray.from_numpy_ndarray(rows)
    data = pa.table({"text": ["x"] * 50, "v": column})
    with pa.ipc.new_file(str(tmp_path / "v.arrow"), data.schema) as writer:
        writer.write_table(data)
    np.testing.assert_array_equal(whole(open_source(tmp_path / "v.arrow"), 7), rows)


def test_a_matrix_a_row_is_refused(tmp_path):
    column = pa.FixedShapeTensorArray.from_numpy_ndarray(np.ones((3, 2, 2)))
    data = pa.table({"v": column})
    with pa.ipc.new_file(str(tmp_path / "v.arrow"), data.schema) as writer:
        writer.write_table(data)
    with pytest.raises(SourceError, match="none that could be a vector"):
        open_source(tmp_path / "v.arrow")


def test_only_the_columns_requested_are_touched(tmp_path, whole, labels):
    data = pa.table({"v": [[1.0]] * 3, "doc": ["a", "a", "b"], "other": [{"x": 1}] * 3})
    with pa.ipc.new_file(str(tmp_path / "v.arrow"), data.schema) as writer:
        writer.write_table(data)
    assert labels(open_source(tmp_path / "v.arrow", document="doc"))["documents"] == list("aab")


def test_offsets_that_point_elsewhere_do_not_crash(tmp_path, whole):
    path = tmp_path / "v.arrow"
    data = pa.table({"v": [[1.0, 2.0], [3.0, 4.0]]})
    with pa.ipc.new_file(str(path), data.schema) as writer:
        writer.write_table(data)
    offsets = np.array([0, 2, 4], dtype=np.int32).tobytes()
    content = path.read_bytes()
    assert content.count(offsets) == 1
    for wrong in ([0, 2, 2**30], [2**30, 2**30 + 2, 2**30 + 4], [0, -2, 4], [4, 2, 0]):
        bad = np.array(wrong, dtype=np.int32).tobytes()
        path.write_bytes(content.replace(offsets, bad))
        with pytest.raises(SourceError, match="got damaged content"):
            whole(open_source(path))


def test_a_stream_that_breaks_off_is_refused(tmp_path, cloud, write, whole):
    content = write(tmp_path / "v.arrow", cloud(n=500), stream=True, batch=100).read_bytes()
    with pytest.raises(SourceError, match="the stream"):
        whole(open_source(io.BytesIO(content[: len(content) // 2])))


def test_a_stream_without_batches_has_no_rows(tmp_path):
    schema = pa.schema([("v", pa.list_(pa.float32(), 3))])
    with pa.ipc.new_stream(str(tmp_path / "v.arrow"), schema):
        pass
    with pytest.raises(SourceError, match="got 0 rows"):
        list(open_source(tmp_path / "v.arrow").chunks())


def test_bad_rows_are_named(tmp_path, whole):
    data = pa.table({"v": [[1.0, 2.0], [1.0]]})
    with pa.ipc.new_file(str(tmp_path / "v.arrow"), data.schema) as writer:
        writer.write_table(data)
    with pytest.raises(RowError, match="expected 2 numbers in row 1"):
        whole(open_source(tmp_path / "v.arrow"))


def test_feather_of_version_one_is_named(tmp_path):
    (tmp_path / "v.feather").write_bytes(b"FEA1" + bytes(100))
    with pytest.raises(SourceError, match="got a feather file of version 1"):
        open_source(tmp_path / "v.feather")

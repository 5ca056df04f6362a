"""parquet: which column, what kinds of lists, and rows that are none."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from isoscope.errors import IsoscopeError, RowError, SourceError
from isoscope.source import open_source


def stored(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("groups", [3, 50])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_lists_are_read_across_row_groups(
    fixed, groups, compression, tmp_path, cloud, write, whole
):
    rows = cloud()
    path = write(
        tmp_path / "v.parquet",
        rows,
        fixed=fixed,
        row_group_size=groups,
        compression=compression,
    )
    source = open_source(path)
    assert source.rows == 50
    np.testing.assert_array_equal(whole(source, 7), rows)


@pytest.mark.parametrize("kind", [pa.large_list(pa.float32()), pa.list_(pa.float16())])
def test_other_kinds_of_lists_are_read(kind, tmp_path, cloud, whole):
    rows = cloud(dtype="float16")
    stored(tmp_path / "v.parquet", v=pa.array(list(rows.astype(float)), type=kind))
    np.testing.assert_array_equal(whole(open_source(tmp_path / "v.parquet"), 7), rows)


def test_a_preferred_name_decides_between_several_lists(tmp_path):
    path = stored(tmp_path / "v.parquet", a=[[1.0]], embedding=[[1.0, 2.0]], b=[[3.0]])
    assert open_source(path).width == 2
    assert open_source(path, column="b").width == 1


def test_several_lists_have_to_be_chosen_from(tmp_path):
    path = stored(tmp_path / "v.parquet", title=[[1.0]], body=[[1.0, 2.0]])
    with pytest.raises(SourceError, match=r"expected one column of vectors .* got 2") as caught:
        open_source(path)
    assert "title, body" in caught.value.hint


def test_float_columns_are_a_matrix_where_there_is_no_list(tmp_path, whole):
    path = stored(
        tmp_path / "v.parquet",
        id=[1, 2],
        x=pa.array([1, 2], pa.float32()),
        y=[3.0, 4.0],
        t=["a", "b"],
    )
    source = open_source(path)
    assert source.dtype == "float64"
    np.testing.assert_array_equal(whole(source), [[1, 3], [2, 4]])
    np.testing.assert_array_equal(whole(open_source(path, column="id,y")), [[1, 3], [2, 4]])


def test_columns_by_pattern(tmp_path, whole):
    path = stored(tmp_path / "v.parquet", **{"e.0": [1.0], "e.1": [2.0], "norm": [9.0]})
    np.testing.assert_array_equal(whole(open_source(path, column="e.*")), [[1, 2]])


@pytest.mark.parametrize(
    ("columns", "asked", "words"),
    [
        ({"t": ["a"]}, None, "got none that could be a vector"),
        ({"t": [1]}, None, "got none that could be a vector"),
        ({"t": [["a"]]}, None, "got none that could be a vector"),
        ({"t": [["a"]]}, "t", r"lists of numbers in column 't' .* got list<"),
        ({"t": [[[1.0]]]}, "t", r"got list<.*list<"),
        ({"t": [{"a": 1.0}]}, "t", r"got struct<"),
        ({"t": ["a"]}, "t", r"got string"),
        ({"t": ["a"], "e": [1.0]}, "t,e", r"column 't' .* got string"),
        ({"t": [[]], "e": [1]}, None, "got none that could be a vector"),
        ({"t": pa.array([[]], pa.list_(pa.float32()))}, None, "got width 0"),
        ({"t": pa.array([None], pa.list_(pa.float32()))}, None, "got 0 rows"),
    ],
)
def test_columns_that_hold_no_vectors_are_refused(columns, asked, words, tmp_path):
    with pytest.raises(SourceError, match=words):
        open_source(stored(tmp_path / "v.parquet", **columns), column=asked)


@pytest.mark.parametrize(
    ("values", "row", "got"),
    [
        ([[1.0, 2.0], [1.0]], 1, "1"),
        ([[1.0, 2.0], [3.0, 4.0], None], 2, "nothing"),
        ([[1.0, 2.0], [3.0, None]], 1, "a null"),
        ([[1.0, 2.0], [], [3.0]], 1, "0"),
    ],
)
@pytest.mark.parametrize("fixed", [False, True])
def test_a_row_that_is_no_vector_is_named_or_dropped(values, row, got, fixed, tmp_path, whole):
    if fixed and any(each is not None and len(each) != 2 for each in values):
        pytest.skip("lists of fixed size cannot differ in length")
    kind = pa.list_(pa.float64(), 2) if fixed else pa.list_(pa.float64())
    path = stored(tmp_path / "v.parquet", v=pa.array(values, kind))
    with pytest.raises(RowError, match=rf"expected 2 numbers in row {row} of .* got {got}"):
        whole(open_source(path))
    source = open_source(path, skip_bad=True)
    good = [each for each in values if each and len(each) == 2 and None not in each]
    np.testing.assert_array_equal(whole(source), good)
    assert source.skipped == len(values) - len(good)


def test_ordinals_and_labels_follow_dropped_rows(tmp_path):
    values = [[1.0], None, [2.0], [3.0, 4.0], [5.0]]
    path = stored(tmp_path / "v.parquet", v=values, doc=list("aabbc"), t=list("vwxyz"))
    source = open_source(path, skip_bad=True, document="doc", text="t", id="t")
    chunks = list(source.chunks(2))
    assert [each.start for each in chunks] == [0, 2, 4]
    assert [list(each.ordinals) for each in chunks[:2]] == [[0], [2]]
    assert chunks[2].ordinals is None
    assert [list(each.documents) for each in chunks] == [["a"], ["b"], ["c"]]
    assert [each.texts for each in chunks] == [["v"], ["x"], ["z"]] == [e.ids for e in chunks]
    assert source.skipped == 2
    list(source.chunks())
    assert source.skipped == 2


def test_nulls_in_a_matrix_and_in_documents(tmp_path, whole):
    path = stored(
        tmp_path / "v.parquet", x=[1.0, None, 3.0], y=[1.0, 2.0, 3.0], d=["a", "a", None]
    )
    with pytest.raises(RowError, match=r"row 1 of .*got nothing"):
        whole(open_source(path))
    source = open_source(path, document="d", skip_bad=True)
    np.testing.assert_array_equal(whole(source), [[1, 1]])
    assert source.skipped == 2


@pytest.mark.parametrize("values", [[1.5], [True], pa.array([0], pa.timestamp("s"))])
def test_documents_are_strings_or_integers(values, tmp_path):
    path = stored(tmp_path / "v.parquet", v=[[1.0]], d=values)
    with pytest.raises(SourceError, match="expected strings or integers as documents"):
        open_source(path, document="d")


def test_categories_serve_as_documents(tmp_path, labels):
    path = stored(
        tmp_path / "v.parquet", v=[[1.0]] * 3, d=pa.array(["x", "x", "y"]).dictionary_encode()
    )
    assert labels(open_source(path, document="d"))["documents"] == ["x", "x", "y"]


def test_a_wrong_name_is_corrected(tmp_path):
    path = stored(tmp_path / "v.parquet", embedding=[[1.0]], doc=["a"])
    with pytest.raises(IsoscopeError, match="no column is called 'embeddingz'") as caught:
        open_source(path, column="embeddingz")
    assert "did you mean 'embedding'" in caught.value.hint
    with pytest.raises(IsoscopeError, match="no column is called 'dok'"):
        open_source(path, document="dok")


def test_a_damaged_page_is_one_error(tmp_path, cloud, write, whole):
    path = write(
        tmp_path / "v.parquet", cloud(n=3000), compression="zstd", use_dictionary=False
    )
    content = bytearray(path.read_bytes())
    content[4:200] = bytes(196)
    path.write_bytes(content)
    with pytest.raises(
        SourceError, match=r"expected a parquet file at .*v.parquet, got damaged"
    ):
        whole(open_source(path))


def test_a_segment_decodes_none_of_the_row_groups_before_it(tmp_path, cloud, write):
    rows = cloud()
    path = write(tmp_path / "v.parquet", rows, row_group_size=10, use_dictionary=False)
    source = open_source(path)
    segments = source.segments(20)
    metadata = pq.read_metadata(path)
    first = metadata.row_group(0).column(0).data_page_offset
    content = bytearray(path.read_bytes())
    content[first : metadata.row_group(2).column(0).data_page_offset] = bytes(
        metadata.row_group(2).column(0).data_page_offset - first
    )
    path.write_bytes(content)
    with pytest.raises(SourceError, match="damaged"):
        list(source.chunks(segment=segments[0]))
    found = [chunk for each in segments[1:] for chunk in source.chunks(7, each)]
    np.testing.assert_array_equal(np.concatenate([each.rows for each in found]), rows[20:])
    assert found[0].start == 20 and found[-1].start + len(found[-1]) == 50

"""Record batches: every way a list can fail to be a vector, found in one go."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope.errors import RowError, SourceError
from isoscope.source.record_batch import first_width, is_list, vector_columns
from isoscope.source.row_source import PassCounts, VectorRequest

cells = st.one_of(
    st.none(), st.lists(st.one_of(st.none(), st.floats(-9, 9)), min_size=0, max_size=4)
)


def converter(batch, *, skip_bad, width=3):
    request = VectorRequest(column="v", skip_bad=skip_bad)
    return replace(vector_columns(batch.schema, request, "t", "t"), width=width)


@given(values=st.lists(cells, min_size=1, max_size=12), cut=st.integers(0, 3))
def test_good_rows_are_kept_and_the_first_bad_one_is_named(values, cut):
    array = pa.array([None] * cut + values, pa.list_(pa.float64()))
    batch = pa.RecordBatch.from_arrays([array], names=["v"]).slice(cut)  # offsets not at 0
    good = [
        i
        for i, each in enumerate(values)
        if each is not None and len(each) == 3 and None not in each
    ]
    tally = PassCounts()
    chunk = converter(batch, skip_bad=True).chunk(batch, 100, tally)
    np.testing.assert_array_equal(
        chunk.rows, np.array([values[i] for i in good]).reshape(-1, 3)
    )
    assert tally.skipped == len(values) - len(good)
    if len(good) == len(values):
        assert chunk.ordinals is None
        return
    assert list(chunk.ordinals) == [100 + i for i in good]
    first = min(set(range(len(values))) - set(good))
    with pytest.raises(RowError, match=f"expected 3 numbers in row {100 + first} of t"):
        converter(batch, skip_bad=False).chunk(batch, 100, PassCounts())


def test_chunks_of_lists_are_views():
    values = pa.array(np.arange(12.0))
    batch = pa.RecordBatch.from_arrays(
        [pa.FixedSizeListArray.from_arrays(values, 3)], names=["v"]
    )
    chunk = converter(batch, skip_bad=False).chunk(batch, 0, PassCounts())
    assert np.shares_memory(chunk.rows, values.to_numpy())


def test_the_first_list_gives_the_width():
    batches = [pa.RecordBatch.from_pydict({"v": each}) for each in ([None], [None, [1.0, 2.0]])]
    batches[0] = batches[1].slice(0, 1)
    assert first_width(iter(batches), "v", "t") == 2
    with pytest.raises(SourceError, match="got 0 rows"):
        first_width(iter(batches[:1]), "v", "t")


def test_text_that_is_not_utf8_is_refused():
    offsets = pa.py_buffer(np.array([0, 2], dtype=np.int32).tobytes())
    bad = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"\xff\xfe")])
    batch = pa.RecordBatch.from_arrays([pa.array([[1.0]]), bad], names=["v", "t"])
    plan = replace(vector_columns(batch.schema, VectorRequest(text="t"), "f", "f"), width=1)
    with pytest.raises(SourceError, match="expected UTF-8 text as texts of f") as caught:
        plan.chunk(batch, 0, PassCounts())
    assert caught.value.slug == "not-utf8"


FLOATS = pa.list_(pa.float32())


def chosen(fields, **asked):
    return vector_columns(pa.schema(fields), VectorRequest(**asked), "t", "t")


def test_lists_go_before_plain_columns():
    plan = chosen([("x", pa.float64()), ("v", FLOATS), ("words", pa.list_(pa.string()))])
    assert plan.vector == ("v",) and plan.listed and plan.width == 0
    assert plan.dtype == "float32" and plan.names == ["v"]


def test_a_list_of_fixed_size_tells_its_width():
    assert chosen([("v", pa.list_(pa.int8(), 3))]).width == 3
    with pytest.raises(SourceError, match="width 0"):
        chosen([("v", pa.list_(pa.int8(), 0))])


def test_label_columns_are_no_part_of_the_vector():
    fields = [("x", pa.float32()), ("y", pa.float64()), ("z", pa.float32()), ("d", pa.int8())]
    plan = chosen(fields, text="z", document="d", id="d")
    assert plan.vector == ("x", "y") and plan.dtype == "float64" and plan.width == 2
    assert plan.names == ["x", "y", "d", "z"]


def test_kinds_of_lists():
    assert all(
        is_list(each) for each in (FLOATS, pa.large_list(pa.int8()), pa.list_(pa.int8(), 2))
    )
    assert not any(is_list(each) for each in (pa.float32(), pa.string(), pa.binary()))

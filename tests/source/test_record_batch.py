"""Record batches: every way a list can fail to be a vector, found in one go."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope.errors import RowError, SourceError
from isoscope.source.batch import Converter, first_width
from isoscope.source.schema import layout
from isoscope.source.source import Tally, Wanted

cells = st.one_of(
    st.none(), st.lists(st.one_of(st.none(), st.floats(-9, 9)), min_size=0, max_size=4)
)


def converter(batch, *, skip_bad, width=3):
    plan = layout(batch.schema, Wanted(column="v"), "t")
    return Converter(plan, width, "t", "t", skip_bad)


@given(values=st.lists(cells, min_size=1, max_size=12), cut=st.integers(0, 3))
def test_good_rows_are_kept_and_the_first_bad_one_is_named(values, cut):
    array = pa.array([None] * cut + values, pa.list_(pa.float64()))
    batch = pa.RecordBatch.from_arrays([array], names=["v"]).slice(cut)  # offsets not at 0
    good = [
        i
        for i, each in enumerate(values)
        if each is not None and len(each) == 3 and None not in each
    ]
    tally = Tally()
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
        converter(batch, skip_bad=False).chunk(batch, 100, Tally())


def test_chunks_of_lists_are_views():
    values = pa.array(np.arange(12.0))
    batch = pa.RecordBatch.from_arrays(
        [pa.FixedSizeListArray.from_arrays(values, 3)], names=["v"]
    )
    chunk = converter(batch, skip_bad=False).chunk(batch, 0, Tally())
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
    plan = layout(batch.schema, Wanted(text="t"), "f")
    with pytest.raises(SourceError, match="expected UTF-8 text as texts of f") as caught:
        Converter(plan, 1, "f", "f", False).chunk(batch, 0, Tally())
    assert caught.value.slug == "not-utf8"

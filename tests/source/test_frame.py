"""Data frames: pandas, polars and pyarrow, tables and columns alike."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from isoscope.errors import IsoscopeError, RowError, SourceError
from isoscope.source import open_source

ROWS = np.random.default_rng(3).normal(size=(50, 4)).astype(np.float32)
DOCUMENTS = [f"d{i // 7}" for i in range(50)]
LISTS = pa.FixedSizeListArray.from_arrays(pa.array(ROWS.reshape(-1)), 4)

FRAMES = {
    "pandas of arrays": lambda: pd.DataFrame({"doc": DOCUMENTS, "v": list(ROWS)}),
    "pandas of lists": lambda: pd.DataFrame({"doc": DOCUMENTS, "v": ROWS.tolist()}),
    "pandas of arrow": lambda: pa.table({"doc": DOCUMENTS, "v": LISTS}).to_pandas(
        types_mapper=pd.ArrowDtype
    ),
    "pandas of columns": lambda: pd.DataFrame(ROWS).assign(doc=DOCUMENTS),
    "pandas with categories": lambda: pd.DataFrame(
        {"doc": pd.Categorical(DOCUMENTS), "v": list(ROWS), "odd": [1, "a"] * 25}
    ),
    "polars of lists": lambda: pl.DataFrame({"doc": DOCUMENTS, "v": ROWS.tolist()}),
    "polars of arrays": lambda: pl.DataFrame({"doc": DOCUMENTS, "v": ROWS}),
    "polars of columns": lambda: pl.DataFrame(ROWS).with_columns(doc=pl.Series(DOCUMENTS)),
    "pyarrow table": lambda: pa.table({"doc": DOCUMENTS, "v": LISTS}),
    "pyarrow batch": lambda: pa.RecordBatch.from_pydict({"doc": DOCUMENTS, "v": LISTS}),
    "pyarrow in pieces": lambda: pa.concat_tables(
        [pa.table({"doc": DOCUMENTS, "v": LISTS}).slice(at, 25) for at in (0, 25)]
    ),
}


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_frames_give_rows_and_documents(name, size, whole, labels):
    source = open_source(FRAMES[name](), document="doc")
    np.testing.assert_allclose(whole(source, size), ROWS, rtol=1e-6)
    assert labels(source, size)["documents"] == DOCUMENTS
    assert source.rows == 50 and source.rereadable and source.name == "rows"
    assert source.fingerprint == open_source(FRAMES[name](), document="doc").fingerprint


@pytest.mark.parametrize("name", [each for each in FRAMES if "columns" not in each])
def test_a_column_comes_alone_or_by_name(name, whole):
    frame = FRAMES[name]()
    np.testing.assert_allclose(whole(open_source(frame, column="v")), ROWS, rtol=1e-6)
    column = frame["v"]
    source = open_source(column, document=DOCUMENTS)
    np.testing.assert_allclose(whole(source, 7), ROWS, rtol=1e-6)
    assert source.has_documents


def test_a_sorted_slice_of_pandas_keeps_its_order(whole):
    frame = FRAMES["pandas of arrays"]().iloc[::-1].iloc[5:20]
    np.testing.assert_array_equal(whole(open_source(frame), 4), ROWS[::-1][5:20])


def test_integer_documents_stay_integers(labels):
    frame = pd.DataFrame({"doc": np.arange(50) // 5, "v": list(ROWS)})
    assert labels(open_source(frame, document="doc"))["documents"] == [
        i // 5 for i in range(50)
    ]


def test_missing_rows_are_named_or_dropped(whole):
    frame = pd.DataFrame({"v": [[1.0, 2.0], None, [3.0], [4.0, 5.0]]})
    with pytest.raises(RowError, match="expected 2 numbers in row 1 of the DataFrame"):
        whole(open_source(frame))
    source = open_source(frame, skip_bad=True)
    np.testing.assert_array_equal(whole(source, 2), [[1, 2], [4, 5]])
    assert source.skipped == 2 and source.fingerprint


def test_another_row_is_another_fingerprint():
    one, other = FRAMES["pandas of arrays"](), FRAMES["pandas of arrays"]()
    other.at[20, "v"] = np.zeros(4, dtype=np.float32)
    assert open_source(one).fingerprint != open_source(other).fingerprint


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pd.DataFrame({"v": []}), "got 0 rows"),
        (pd.DataFrame({"t": ["a"]}), "none that could be a vector"),
        (pd.Series(["a"]), "expected lists of numbers in column"),
        (pl.Series([["a"]]), "expected lists of numbers in column"),
        (pa.array([{"a": 1}]), "expected lists of numbers in column"),
    ],
)
def test_frames_without_vectors_are_refused(frame, words):
    with pytest.raises(SourceError, match=words):
        open_source(frame)


def test_a_column_of_single_numbers_is_refused():
    with pytest.raises(SourceError, match=r"expected lists of numbers .* got double"):
        open_source(pd.Series([1.0, 2.0]))


def test_a_wrong_column_is_corrected():
    with pytest.raises(IsoscopeError, match="no column is called 'dok'") as caught:
        open_source(FRAMES["pandas of arrays"](), document="dok")
    assert "did you mean 'doc'" in caught.value.hint


def test_objects_that_turn_up_later_are_damage(whole):
    column = [[1.0, 2.0]] * 100 + ["text"]
    with pytest.raises(SourceError, match="the DataFrame"):
        whole(open_source(pd.DataFrame({"v": column})))

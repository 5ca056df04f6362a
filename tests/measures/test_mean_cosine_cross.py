"""mean-cosine-cross against the definition, pair by pair across documents."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from isoscope.errors import TooFewRowsError

numbers = st.integers(-80, 80).map(lambda i: i / 8)
lengths = st.lists(st.integers(1, 4), min_size=2, max_size=5)
collections = st.tuples(lengths, st.integers(1, 4)).flatmap(
    lambda made: st.tuples(
        st.just(np.repeat(np.arange(len(made[0])), made[0])),
        arrays(np.float64, (sum(made[0]), made[1]), elements=numbers),
    )
)


def by_definition(rows, documents):
    cosines = [
        x @ y / (np.linalg.norm(x) * np.linalg.norm(y))
        for x, a in zip(rows, documents, strict=True)
        for y, b in zip(rows, documents, strict=True)
        if a != b and x.any() and y.any()
    ]
    return np.mean(cosines)


@given(made=collections)
def test_equals_the_average_over_pairs_of_different_documents(value, made):
    documents, rows = made
    assume(len(set(documents[rows.any(axis=1)])) >= 2)
    found = value(rows, "mean-cosine-cross", document=documents)
    assert found == pytest.approx(by_definition(rows, documents), abs=1e-12)


def test_without_documents_every_row_is_its_own(measured):
    rows = np.random.default_rng(1).normal(size=(20, 4)) + 0.3
    found = measured(rows, "mean-cosine", "mean-cosine-cross")
    assert found["mean-cosine-cross"].value == pytest.approx(found["mean-cosine"].value)


def test_documents_that_resemble_only_themselves_read_near_zero(measured):
    rng = np.random.default_rng(2)
    documents = np.repeat(np.arange(200), 5)
    rows = rng.normal(size=(200, 64))[documents] + 0.1 * rng.normal(size=(1000, 64))
    found = measured(rows, "mean-cosine", "mean-cosine-cross", document=documents)
    assert abs(found["mean-cosine-cross"].value) < 0.002 < found["mean-cosine"].value


def test_many_documents_that_share_a_group_are_still_distinguished(value):
    rng = np.random.default_rng(3)
    documents = np.repeat(np.arange(100), rng.integers(1, 4, 100))
    rows = rng.normal(size=(len(documents), 3)) + 0.5
    found = value(rows, "mean-cosine-cross", document=documents)
    assert found == pytest.approx(by_definition(rows, documents), abs=1e-12)


def test_one_document_has_nothing_to_be_compared_with(value):
    rows = np.random.default_rng(4).normal(size=(9, 3))
    with pytest.raises(TooFewRowsError, match="needs at least 2 documents, got 1"):
        value(rows, "mean-cosine-cross", document=np.zeros(9, dtype=int))


def test_a_document_of_zero_rows_does_not_count(value):
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    with pytest.raises(TooFewRowsError, match="needs at least 2 documents, got 1"):
        value(rows, "mean-cosine-cross", document=np.array(["a", "a", "b"]))

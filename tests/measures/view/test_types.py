"""Sums over types, as if a group of types had never been seen."""

import numpy as np
import pytest

from isoscope.errors import TooFewRowsError
from isoscope.measures.view import TypeSums
from isoscope.measures.view.token_types import no_tokens, not_repeated


@pytest.fixture
def view(words, token_survey):
    from isoscope.accumulate import Directions, Vocabulary
    from isoscope.measures.view import Summaries
    from isoscope.study.rows import ROWS as PLACE

    held = token_survey(*words, ["self-similarity"]).held[PLACE]
    summaries = Summaries()
    for kind in (Vocabulary, Directions):
        summaries[kind] = held[kind].finalize()
    return summaries.view(TypeSums)


def test_every_type_is_in_one_group(view, words):
    tokens = words[2]
    types, counts = np.unique(tokens, return_counts=True)
    assert view.documents == len(types)
    assert view.count == len(tokens)
    assert view.repeated.sum() == (counts > 1).sum()
    assert view.row_squares.sum() == (counts**2).sum()


def test_leaving_a_group_out_leaves_its_types_out(view):
    left = view.without(1)
    assert left.groups == view.groups - 1
    assert left.documents == view.documents - view.sizes[1]
    np.testing.assert_allclose(left.means.sum(axis=0) + view.means[1], view.means.sum(axis=0))
    assert left.every is view.every


def test_the_errors_say_what_is_missing():
    assert isinstance(no_tokens(), TooFewRowsError)
    assert "at least 5 times, got none among 3 types" in not_repeated("mev", 5, 3).problem

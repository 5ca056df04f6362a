"""The registry: order, one name each, and the right name when a wrong one is asked for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope.errors import UnknownNameError
from isoscope.measures import MEASURES
from isoscope.registry import Registry, unknown


@pytest.fixture
def fruit():
    registry = Registry("fruit")
    for name in ("pear", "apple", "quince"):
        registry.add(name, name.upper())
    return registry


def test_things_are_found_by_name_and_kept_in_order(fruit):
    assert fruit["apple"] == "APPLE"
    assert list(fruit) == ["pear", "apple", "quince"]
    assert list(fruit.values()) == ["PEAR", "APPLE", "QUINCE"]
    assert len(fruit) == 3 and "pear" in fruit and "plum" not in fruit


def test_a_name_is_given_once(fruit):
    with pytest.raises(ValueError, match="fruit 'pear' is registered twice"):
        fruit.add("pear", "other")
    assert fruit["pear"] == "PEAR"


def test_a_near_miss_is_requested_after(fruit):
    with pytest.raises(UnknownNameError, match="no fruit is called 'aple'") as caught:
        fruit["aple"]
    assert caught.value.hint == "did you mean 'apple'?"
    assert caught.value.slug == "unknown-fruit"


def test_a_far_miss_gets_the_list(fruit):
    with pytest.raises(UnknownNameError) as caught:
        fruit["zzz"]
    assert caught.value.hint == "choose from: pear, apple, quince"


def test_a_long_list_is_cut():
    hint = unknown("row", "?", [str(i) for i in range(100, 130)]).hint
    assert hint.count(",") == 12 and hint.endswith("110, 111, ...")
    assert unknown("row", "?", [str(i) for i in range(100, 112)]).hint.endswith("110, 111")


def test_an_empty_list_says_so():
    assert unknown("site", "q.1", []).hint == "choose from: (none)"


def test_a_kind_of_two_words_makes_one_slug():
    assert unknown("weight site", "q", []).slug == "unknown-weight-site"


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("mean-cosin", "mean-cosine"),
        ("mean_cosine", "mean-cosine"),
        ("IsoScore", "isoscore"),
        ("isoscore*", "isoscore"),
        ("participation-ratio", "participation"),
        ("two-nn", "twonn"),
        ("rank-me", "rankme"),
        ("effective_rank", "effective-rank"),
    ],
)
def test_measures_are_found_from_what_people_type(wrong, right):
    with pytest.raises(UnknownNameError) as caught:
        MEASURES[wrong]
    assert caught.value.hint == f"did you mean {right!r}?"


@given(name=st.text())
def test_any_name_is_found_or_refused(name):
    if name in MEASURES:
        assert MEASURES[name].name == name
    else:
        with pytest.raises(UnknownNameError, match="no measure is called"):
            MEASURES[name]

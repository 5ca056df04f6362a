"""Columns by name, by several names, by pattern."""

import pytest

from isoscope.errors import IsoscopeError, SourceError
from isoscope.source.columns import labels_exist, matching, the_only
from isoscope.source.source import Wanted

NAMES = ["id", "e0", "e1", "e10", "a,b", "x*"]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("e1", ["e1"]),
        ("e*", ["e0", "e1", "e10"]),
        ("e10, e0", ["e10", "e0"]),
        ("e?,id", ["e0", "e1", "id"]),
        ("e*,e0", ["e0", "e1", "e10"]),
        ("a,b", ["a,b"]),
        ("x*", ["x*"]),
    ],
)
def test_what_a_name_stands_for(asked, found):
    assert matching(asked, NAMES) == found


def test_each_name_of_several_has_to_be_there():
    with pytest.raises(IsoscopeError, match="no column is called 'e99'"):
        matching("e0,e99", NAMES)


def test_the_only_one_or_the_preferred_one():
    assert the_only(["x"], "t") == "x"
    assert the_only(["x", "vectors", "embedding"], "t") == "embedding"
    with pytest.raises(SourceError, match="expected one column of vectors in t, got 2"):
        the_only(["x", "y"], "t")


def test_labels_have_to_be_there():
    labels_exist(Wanted(document="a", id="b"), ["a", "b"])
    with pytest.raises(IsoscopeError, match="no column is called 'text'"):
        labels_exist(Wanted(text="text"), ["texts"])

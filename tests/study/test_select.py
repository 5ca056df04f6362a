"""Documents are taken until there are tokens enough; what is passed over is counted."""

from types import SimpleNamespace

import pytest

from isoscope.errors import SourceError
from isoscope.study.selection import take_documents


def prepare(ordinal):
    if ordinal == 3:
        raise SourceError("cannot read 3", hint="", slug="image-unreadable")
    if ordinal == 1:
        return None
    return SimpleNamespace(length=10 + ordinal, cost=16, truncated=ordinal == 2)


def test_enough_tokens_end_the_selection():
    found = take_documents([0, 2, 4, 5], prepare, tokens=21)
    assert [item.ordinal for item in found.items] == [0, 2]
    assert found.rows == 22


def test_without_a_limit_all_are_taken():
    assert len(take_documents([0, 2, 4, 5], prepare, tokens=None).items) == 4


def test_what_is_passed_over_is_counted():
    found = take_documents(range(6), prepare, tokens=None, skip_bad=True)
    assert (found.short, found.truncated, found.bad) == (1, 1, ["cannot read 3"])
    assert found.warnings() == [
        "1 of 4 documents were truncated",
        "1 documents shorter than two tokens were left out",
        "1 documents could not be read and were skipped",
    ]


def test_a_bad_document_ends_it_unless_it_may_be_skipped():
    with pytest.raises(SourceError, match="cannot read 3"):
        take_documents(range(6), prepare, tokens=None)

"""Documents are taken until there are tokens enough; what is passed over is counted."""

from types import SimpleNamespace

import numpy as np
import pytest

from isoscope.errors import SourceError
from isoscope.study.frequency import Frequencies
from isoscope.study.selection import select_documents


class Numbers:
    """A corpus whose documents are their own ordinals."""

    def __init__(self, ordinals):
        self.ordinals = ordinals

    def order(self, seed):
        return self.ordinals

    def document(self, ordinal):
        return ordinal


def prepare(ordinal):
    if ordinal == 3:
        raise SourceError("cannot read 3", hint="", slug="image-unreadable")
    if ordinal == 1:
        return None
    inputs, special = {"input_ids": np.arange(10 + ordinal)}, {"": np.zeros(10 + ordinal, bool)}
    return SimpleNamespace(
        length=10 + ordinal, cost=16, truncated=ordinal == 2, inputs=inputs, special=special
    )


def take_documents(ordinals, **options):
    feed = SimpleNamespace(prepare=prepare)
    return select_documents(Numbers(ordinals), feed, Frequencies(), seed=0, **options)


def test_enough_tokens_end_the_selection():
    found = take_documents([0, 2, 4, 5], tokens=21)
    assert [item.ordinal for item in found.items] == [0, 2]
    assert found.rows == 22


def test_what_was_prepared_is_kept_as_long_as_it_is_small(monkeypatch):
    found = take_documents([0, 2, 4], tokens=None)
    assert list(found.prepared) == [0, 2, 4]
    assert len(found.prepared[4].inputs["input_ids"]) == 14
    monkeypatch.setattr("isoscope.study.selection.PREPARED", 10 * 9 + 14 * 9)
    assert list(take_documents([0, 4, 2], tokens=None).prepared) == [0, 4]


def test_without_a_limit_all_are_taken():
    assert len(take_documents([0, 2, 4, 5], tokens=None).items) == 4


def test_what_is_passed_over_is_counted():
    found = take_documents(range(6), tokens=None, skip_bad=True)
    assert (found.short, found.truncated, found.bad) == (1, 1, ["cannot read 3"])
    assert found.warnings() == [
        "1 of 4 documents were truncated",
        "1 documents shorter than two tokens were skipped",
        "1 documents could not be read and were skipped",
    ]


def test_a_bad_document_ends_it_unless_it_may_be_skipped():
    with pytest.raises(SourceError, match="cannot read 3"):
        take_documents(range(6), tokens=None)

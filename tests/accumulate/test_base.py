"""What the base class does for every accumulator: checks, counting, saving, merging."""

from typing import Any

import numpy as np
import pytest

from isoscope.accumulate import (
    ACCUMULATORS,
    Accumulator,
    ArrayBlock,
    Moments,
    Tally,
    merged,
)
from isoscope.errors import MergeError, RowError, TooFewRowsError
from isoscope.hashing import named_documents


class Total(Accumulator[float]):
    """The smallest accumulator there is; it notes what reaches its mathematics."""

    least = 2

    def __init__(self, width):
        super().__init__(width)
        self.total = 0.0
        self.calls: list[Any] = []

    def _add(self, block):
        self.calls.append(("add", self.count))
        self.total += float(block.rows.sum())

    def _absorb(self, other):
        self.calls.append(("absorb", self.count))
        self.total += other.total

    def _arrays(self):
        return {"total": np.array(self.total)}

    def _restore(self, state):
        self.total = float(state["total"])

    def finalize(self):
        self._enough(self.count)
        return self.total


def fed(*values):
    total = Total(1)
    total.update(ArrayBlock(np.array(values, dtype=float)[:, None]))
    return total


def test_an_empty_block_never_reaches_the_mathematics():
    total = Total(3)
    total.update(ArrayBlock(np.zeros((0, 3))))
    assert total.count == 0 and total.calls == []


def test_an_empty_block_may_have_any_width():
    total = Total(3)
    total.update(ArrayBlock(np.zeros((0, 7))))
    assert total.count == 0


def test_an_empty_peer_never_reaches_the_mathematics():
    total = fed(1, 2)
    total.merge(Total(1))
    assert total.calls == [("add", 0)]


def test_the_mathematics_sees_the_count_before_the_rows():
    total = fed(1, 2)
    total.update(ArrayBlock(np.ones((3, 1))))
    total.merge(fed(4))
    assert total.calls == [("add", 0), ("add", 2), ("absorb", 5)]
    assert total.count == 6


def test_rows_of_another_width_are_refused_and_change_nothing():
    total = fed(1, 2)
    with pytest.raises(RowError, match="expected vectors of width 1, got width 4") as caught:
        total.update(ArrayBlock(np.ones((2, 4))))
    assert caught.value.slug == "rows-width"
    assert total.count == 2 and total.total == 3


def test_a_refused_peer_is_named_and_changes_nothing():
    total = fed(1, 2)
    with pytest.raises(MergeError, match=r"cannot merge Total\(width=1, count=2\) with Tally"):
        total.merge(Tally(1))
    assert total.count == 2 and total.total == 3


def test_a_subclass_is_another_kind():
    class Other(Total):
        pass

    with pytest.raises(MergeError, match="cannot merge"):
        fed(1).merge(Other(1))


def test_too_few_rows_are_reported_with_how_many_there_are():
    with pytest.raises(TooFewRowsError, match="total needs at least 2 usable rows, got 1"):
        fed(1).finalize()


def test_a_state_is_the_count_and_the_arrays():
    state = fed(1, 2).state()
    assert state["count"] == 2 and state["count"].dtype == np.int64
    assert state["total"] == 3
    back = Total.from_state(state, width=1)
    assert type(back) is Total and (back.count, back.total, back.width) == (2, 3, 1)


def test_merged_adds_up_and_leaves_every_part_alone():
    parts = [fed(1, 2), fed(3), Total(1), fed(4)]
    total = merged(parts)
    assert (total.count, total.total) == (4, 10)
    assert [part.total for part in parts] == [3, 3, 0, 4]
    assert total is not parts[0]


def test_merged_takes_any_iterable_and_one_part_will_do():
    assert merged(iter([fed(1, 2)])).total == 3


def test_it_says_what_it_is():
    assert repr(fed(1, 2)) == "Total(width=1, count=2)"


@pytest.mark.parametrize("kind", ACCUMULATORS, ids=lambda k: k.__name__)
def test_every_state_is_made_of_plain_arrays(kind):
    accumulator = kind(4)
    accumulator.update(ArrayBlock(np.random.default_rng(1).normal(size=(50, 4))))
    for name, array in accumulator.state().items():
        assert isinstance(array, np.ndarray), name
        assert array.dtype.kind in "iuf", name  # what safetensors can hold


@pytest.mark.parametrize("kind", ACCUMULATORS, ids=lambda k: k.__name__)
def test_a_summary_does_not_change_when_more_rows_come(kind):
    rng = np.random.default_rng(2)
    accumulator = kind(4)
    parts = [
        ArrayBlock(
            rng.normal(size=(50, 4)),
            named_documents(np.repeat(np.arange(start, start + 25), 2)),
            np.tile(np.arange(2, dtype=np.uint64), 25),
            tokens=rng.integers(0, 9, 50),
            ordinals=np.arange(2 * start, 2 * start + 50),
        )
        for start in (0, 25)
    ]
    accumulator.update(parts[0])
    summary = accumulator.finalize()
    before = repr(summary)
    accumulator.update(parts[1])
    assert repr(summary) == before


def test_the_registered_accumulators_have_names_of_their_own():
    assert len({kind.__name__ for kind in ACCUMULATORS}) == len(ACCUMULATORS)
    assert Moments in ACCUMULATORS

"""The plain case of a view: one summary, which leaves groups out itself."""

from dataclasses import dataclass

import numpy as np

from isoscope.accumulate import Tally
from isoscope.measures.view import Summaries
from isoscope.measures.view.grouped import Grouped


@dataclass(frozen=True)
class Numbers:
    """A summary that any view of one would accept."""

    sizes: np.ndarray
    documents: int = 5

    @property
    def groups(self):
        return len(self.sizes)

    @property
    def count(self):
        return int(self.sizes.sum())

    def without(self, group):
        return Numbers(np.delete(self.sizes, group), self.documents)


class OfTally(Grouped):
    """A view of one summary."""

    needs = (Tally,)


def test_it_says_what_its_summary_says():
    every = Summaries()
    every[Tally] = Numbers(np.array([1.0, 2.0, 3.0]))
    seen = every.view(OfTally)
    assert (seen.count, seen.documents, seen.groups) == (6, 5, 3)
    np.testing.assert_array_equal(seen.sizes, [1, 2, 3])


def test_without_a_group_it_is_a_view_of_its_own_kind():
    seen = OfTally(Numbers(np.array([1.0, 2.0, 3.0])))
    left = seen.without(1)
    assert type(left) is OfTally
    np.testing.assert_array_equal(left.sizes, [1, 3])
    assert seen.groups == 3

"""The plain case of a view: one summary, which excludes groups itself."""

from dataclasses import dataclass

import numpy as np

from isoscope.accumulate import Tally
from isoscope.accumulate.cellwise import ByGroup
from isoscope.measures.view import Summaries
from isoscope.measures.view.summaries import SummaryView

NUMBERS = ByGroup(keys=np.arange(3), sizes=np.array([1.0, 2.0, 3.0]), documents=5)


@dataclass(frozen=True, kw_only=True)
class OfTally(SummaryView):
    """A view of one summary."""

    needs = (Tally,)


def test_it_says_what_its_summary_says():
    every = Summaries()
    every[Tally] = NUMBERS
    seen = every.view(OfTally)
    assert (seen.count, seen.documents, seen.groups) == (6, 5, 3)
    np.testing.assert_array_equal(seen.sizes, [1, 2, 3])


def test_without_a_group_it_is_a_view_of_its_own_kind():
    seen = OfTally(**vars(NUMBERS))
    left = seen.without(1)
    assert type(left) is OfTally
    np.testing.assert_array_equal(left.sizes, [1, 3])
    np.testing.assert_array_equal(left.keys, [0, 2])
    assert seen.groups == 3

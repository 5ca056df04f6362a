"""Norms: their moments."""

from isoscope.accumulate import Norms
from isoscope.measures.view.grouped import Grouped


class NormMoments(Grouped):
    """Mean and spread of the norms of each group."""

    needs = (Norms,)

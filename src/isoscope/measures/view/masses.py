"""Masses: how much of the squared length of rows is their mean, group by group."""

from isoscope.accumulate import Groups
from isoscope.measures.view.grouped import Grouped


class Masses(Grouped):
    """Rows, mean and trace of each group."""

    needs = (Groups,)

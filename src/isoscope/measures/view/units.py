"""Unit vectors: their sums, about the origin or about the mean."""

from isoscope.accumulate import CentredDirections, Directions
from isoscope.measures.view.grouped import Grouped


class Units(Grouped):
    """Sums of unit vectors."""

    needs = (Directions,)


class CentredUnits(Grouped):
    """Sums of unit vectors as seen from the mean."""

    needs = (CentredDirections,)

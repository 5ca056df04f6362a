"""Sinks: what the mean cosine would be if they pointed no further than the other rows."""

from isoscope.causes.cloud import Totals


def weight_without(totals: Totals) -> float:
    """Return what the mean cosine of the other rows is multiplied with for that of all.

    With s and o the mean unit vectors of sinks and of other rows, a sink keeps the part b o
    of s that the others have as well, b = s.o/|o|^2 between 0 and 1: a sink that points
    where everything points takes nothing from the common mean.
    """
    n, sinks = totals.rows, totals.sink_rows
    if not sinks:
        return 1.0
    inside = float(totals.by_dimension.sum())
    across = float(totals.sinks @ totals.unit) / (sinks * n)
    shared = min(max(across / inside, 0.0), 1.0) if inside > 0 else 0.0
    return ((n + shared * sinks) / (n + sinks)) ** 2

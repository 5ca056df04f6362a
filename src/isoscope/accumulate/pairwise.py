"""Two sets of rows made one: how their means and their sums of squares are combined."""

from typing import TypeVar

from isoscope.types import Array

N = TypeVar("N", float, Array)


def pairwise_weights(ours: N, theirs: N) -> tuple[N, N]:
    """Return b / n and a b / n, for a and b rows that become n (Chan, Golub and LeVeque, 1983).

    With `step` from our mean to theirs, the mean moves by step b / n, and sums about the
    means grow by the product of the step with itself times a b / n:

        mean    = mean_a + step b / n
        scatter = scatter_a + scatter_b + step step' a b / n

    >>> pairwise_weights(3.0, 1.0)
    (0.25, 0.75)
    """
    total = ours + theirs
    return theirs / total, ours * theirs / total

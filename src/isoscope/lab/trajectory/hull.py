"""The convex hull of a cloud: does it contain the origin?

Where it does not, some direction has a positive inner product with every row: the cloud is
a cone. The hull contains the mean of the rows. A linear program finds how far it reaches from
there, through the origin and beyond; for a cloud that is as likely anywhere as opposite,
Wendel (1962) gives the chance that it reaches the origin.
"""

from math import exp, expm1, lgamma, log, sqrt

import numpy as np

from isoscope.dataclass import dataclass
from isoscope.errors import TooFewRowsError
from isoscope.types import Array

ROWS_PER_WIDTH = 4
_NARROW = 1e-10  # of the largest variance: directions with less are rounding
_ROUNDS = 200
_GAP = 1e-9  # between the program and its dual, of their size
_INSIDE = 1e-7  # of the distance to the mean: a hull this close to the origin contains it


@dataclass(frozen=True, slots=True)
class Hull:
    """Whether the convex hull of rows contains the origin, and how far it is from its edge.

    `margin` is how far the hull reaches beyond the origin, going from the mean through the
    origin, in root mean square lengths of a row; negative where it ends before the origin.
    `width` is the number of directions in which there are rows at all, and `wendel` the
    chance that the hull of as many rows of a symmetric cloud of that width has the origin.
    """

    inside: bool
    margin: float
    rows: int
    width: int
    wendel: float


def origin_in_hull(rows: Array) -> Hull:
    """Return whether the convex hull of rows (n, d) contains the origin."""
    cloud = np.asarray(rows, dtype=np.float64)
    n, d = cloud.shape
    if n < ROWS_PER_WIDTH * d:
        raise TooFewRowsError(
            f"a hull in {d} dimensions needs at least {ROWS_PER_WIDTH * d} rows, got {n}",
            hint="measure more documents",
            slug="too-few-rows",
        )
    size = sqrt(np.square(cloud).sum() / n)
    if size == 0:
        return Hull(True, 0.0, n, 0, 1.0)
    # the answer is the same after any linear map: all directions get the same variance
    variances, axes = np.linalg.eigh(cloud.T @ cloud / n)
    kept = variances > _NARROW * variances[-1]
    cloud = cloud @ (axes[:, kept] / np.sqrt(variances[kept]))
    width = int(kept.sum())
    mean = cloud.mean(axis=0)
    length = sqrt(mean @ mean)
    chance = -expm1(log_outside(n, width))
    if length < 1e-12:
        return Hull(True, 0.0, n, width, chance)
    beyond = _reach(cloud, mean / length) / length
    apart = float(np.linalg.norm(np.asarray(rows, dtype=np.float64).mean(axis=0)))
    return Hull(beyond >= -_INSIDE, beyond * apart / size, n, width, chance)


def log_outside(rows: int, width: int) -> float:
    """Return the logarithm of the chance that the hull of a symmetric cloud has no origin.

    Wendel (1962): of rows in general position it is the sum of the binomials (rows - 1 over
    k), k < width, over 2^(rows - 1), whatever the cloud is.

    >>> round(exp(log_outside(3, 2)), 6), log_outside(10, 10)
    (0.75, 0.0)
    """
    if rows <= width:
        return 0.0
    terms = [
        lgamma(rows) - lgamma(k + 1) - lgamma(rows - k) - (rows - 1) * log(2)
        for k in range(width)
    ]
    largest = max(terms)
    return min(0.0, largest + log(sum(exp(term - largest) for term in terms)))


def _reach(cloud: Array, direction: Array) -> float:
    """Return how far the hull reaches opposite to the direction of the mean, from the origin.

    The program: weights w >= 0 that add up to one, with cloud' w along the direction, so that
    cloud' w . direction is least. Equal weights fulfil it; so does a dual point below all
    rows. From both a primal-dual interior point method runs to the end (Mehrotra, 1992).
    """
    n = len(cloud)
    cost = cloud @ direction
    # orthonormal directions across the mean: a Householder reflection without its first column
    across = np.linalg.qr(np.column_stack([direction, np.eye(len(direction))]))[0][:, 1:]
    sides = np.vstack([(cloud @ across).T, np.ones(n)])  # (width, n)
    weights = np.full(n, 1 / n)
    dual = np.zeros(len(sides))
    dual[-1] = cost.min() - np.ptp(cost) - 1.0
    slack = cost - dual @ sides
    for _ in range(_ROUNDS):
        gap = float(weights @ slack)
        if gap <= _GAP * (1 + abs(float(cost @ weights))):
            break
        weights, dual, slack = _improve(sides, weights, dual, slack)
    return -float(cost @ weights)


def _improve(
    sides: Array, weights: Array, dual: Array, slack: Array
) -> tuple[Array, Array, Array]:
    """Return weights, dual point and slack after one step towards the optimum."""
    n = len(weights)
    ratio = weights / slack
    normal = (sides * ratio) @ sides.T
    normal[np.diag_indices_from(normal)] *= 1 + 1e-13  # near the end it is nearly singular
    lacking = -(sides @ weights)  # rounding: every step stays feasible
    lacking[-1] += 1.0

    def newton(target: Array) -> tuple[Array, Array, Array]:
        """Solve for moves with weights x slack = target to first order, staying feasible."""
        short = (target - weights * slack) / slack
        move = np.linalg.solve(normal, lacking - sides @ short)
        of_slack = -(move @ sides)
        return short - ratio * of_slack, move, of_slack

    gap = float(weights @ slack) / n
    trial_w, _, trial_s = newton(np.zeros(n))
    far_w, far_s = _longest(weights, trial_w), _longest(slack, trial_s)
    left = float((weights + far_w * trial_w) @ (slack + far_s * trial_s)) / n
    centre = (left / gap) ** 3 * gap
    move_w, move_d, move_s = newton(centre - trial_w * trial_s)
    far_w, far_s = 0.99 * _longest(weights, move_w), 0.99 * _longest(slack, move_s)
    return weights + far_w * move_w, dual + far_s * move_d, slack + far_s * move_s


def _longest(values: Array, move: Array) -> float:
    """Return the longest step, at most one, that leaves all values positive."""
    falls = move < 0
    return min(1.0, float((-values[falls] / move[falls]).min(initial=np.inf)))

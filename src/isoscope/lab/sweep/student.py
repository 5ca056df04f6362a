"""Student's t with a whole number of degrees of freedom, as few seeds have."""

from math import atan, cos, inf, pi, sin, sqrt


def two_sided(t: float, freedom: int) -> float:
    """Return how often chance alone is as far from zero as t, on either side.

    The finite sums of Abramowitz and Stegun 26.7.3 and 26.7.4.

    >>> round(two_sided(2.776445, 4), 6)
    0.05
    """
    if t in (inf, -inf):
        return 0.0
    angle = atan(abs(t) / sqrt(freedom))
    c, s = cos(angle), sin(angle)
    term = total = c if freedom % 2 else 1.0
    for k in range(2 if freedom % 2 else 1, freedom - 1, 2):
        term *= c * c * k / (k + 1)
        total += term
    if freedom % 2 == 0:
        return max(0.0, 1.0 - s * total)
    between = angle if freedom == 1 else angle + s * total
    return max(0.0, 1.0 - 2.0 / pi * between)


def quantile(freedom: int, outside: float = 0.05) -> float:
    """Return the t that chance exceeds, on both sides together, so often.

    >>> round(quantile(4), 4)
    2.7764
    """
    low, high = 0.0, 1.0
    while two_sided(high, freedom) > outside:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if two_sided(middle, freedom) > outside else (low, middle)
    return high

"""The size of a change against the scale of its measure, and when it is negligible."""

from functools import cache
from math import isfinite

from isoscope.comparison.rule import known_measures
from isoscope.errors import ConfigError
from isoscope.measures import MEASURES, level
from isoscope.measures.difference import Difference

NEGLIGIBLE = 0.01  # of the scale of a measure
_MANY = 10**9  # rows: what an isotropic cloud reads without any bias
_NOTHING = 1e-6


def scale_of(measure: str, first: float, second: float) -> float:
    """Return what a change of a measure is compared with: the larger of the two values.

    Measures that are 0 for an isotropic cloud and 1 for a collapsed one (mean cosines,
    mean-share) have the scale 1: near 0 twice as much is still nothing.
    """
    return 1.0 if _starts_at_zero(measure) else max(abs(first), abs(second))


def is_negligible(gap: Difference, scale: float, limit: float) -> bool:
    """Whether a difference is known to be smaller than this share of the scale.

    Its whole 95 % interval is, not only its value.
    """
    if gap.low is None or gap.high is None:
        return False
    return max(abs(gap.low), abs(gap.high)) < limit * scale


def check_limit(limit: float) -> float:
    """Return a share below which changes are negligible, or refuse it."""
    if not (isfinite(limit) and 0 <= limit < 1):
        raise ConfigError(
            f"expected a share of at least 0 and below 1 for negligible changes, got {limit}",
            hint="0.01 calls changes below 1 % of the scale of a measure negligible; 0 none",
            slug="negligible-share",
        )
    return limit


@cache
def _starts_at_zero(measure: str) -> bool:
    """Whether an isotropic cloud of endless rows reads 0."""
    record = MEASURES[known_measures()[measure]] if measure in known_measures() else None
    isotropic = None if record is None else level(record.isotropic, _MANY, 64)
    return isotropic is not None and abs(isotropic) < _NOTHING

"""Alpha: how fast does the spectrum decay?"""

import numpy as np

from isoscope.errors import TooFewRowsError
from isoscope.measures.base import measure
from isoscope.measures.view import Spectrum, isotropic_spectrum
from isoscope.types import Array

FIRST = 5  # the first few eigenvalues follow no power law
_LEAST = 3


def last(n: int, d: int) -> int:
    """Return the number of the last eigenvalue in the fit; beyond it sampling noise rules."""
    return min(d, n) // 2


def slope(values: Array, n: int) -> float:
    """Return minus the slope of log eigenvalue on log rank, fifth to middle one."""
    end = last(n, len(values))
    rounding = values[0] * len(values) * np.finfo(np.float64).eps  # where it should be zero
    if end - FIRST + 1 < _LEAST or values[FIRST - 1 : end].min() <= rounding:
        raise TooFewRowsError(
            f"alpha needs at least {_LEAST} eigenvalues above zero from number {FIRST} to "
            f"{end}, got fewer",
            hint=f"it needs at least {2 * (FIRST + _LEAST - 1)} dimensions and rows",
            slug="too-few-eigenvalues",
        )
    rank = np.log(np.arange(FIRST, end + 1))
    height = np.log(values[FIRST - 1 : end])
    rank -= rank.mean()
    return float(-(rank @ height) / (rank @ rank))


@measure(
    "alpha",
    reads=Spectrum,
    isotropic=lambda n, d: slope(isotropic_spectrum(n, d), n),
    collapsed=None,
    unmoved_by={"rotation", "scale", "shift"},
    cite="agrawal2022",
    formula="minus the least-squares slope of log lambda_k on log k, k = 5 .. min(d, n)/2",
    misleads="Assumes a power law; the range is fixed at 5 to min(d, n)/2 and moves the value. "
    "White rows do not read 0 unless they are many: sampling alone bends the spectrum.",
)
def alpha(seen: Spectrum) -> float:
    """Exponent of the spectrum's decay: 0 is flat, 1 falls as 1/k."""
    return slope(seen.values, seen.count)

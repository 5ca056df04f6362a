"""Alpha: how fast does the spectrum decay?"""

import numpy as np

from isoscope.errors import TooFewRowsError
from isoscope.measures.base import measure
from isoscope.measures.interval import at_once
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
    (found,) = slopes(values[None], n)
    if np.isnan(found):
        raise TooFewRowsError(
            f"alpha needs at least {_LEAST} eigenvalues above zero from number {FIRST} to "
            f"{end}, got fewer",
            hint=f"it needs at least {2 * (FIRST + _LEAST - 1)} dimensions and rows",
            slug="too-few-eigenvalues",
        )
    return float(found)


def slopes(values: Array, n: int) -> Array:
    """Return the same of each spectrum, (k, d) to (k,); NaN where it is not defined."""
    width = values.shape[1]
    end = last(n, width)
    found = np.full(len(values), np.nan)
    if end - FIRST + 1 < _LEAST:
        return found
    fitted = values[:, FIRST - 1 : end]
    rounding = values[:, 0] * width * np.finfo(np.float64).eps  # where it should be zero
    there = fitted.min(axis=1) > rounding
    rank = np.log(np.arange(FIRST, end + 1))
    rank -= rank.mean()
    found[there] = -(np.log(fitted[there]) @ rank) / (rank @ rank)
    return found


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


@at_once(alpha)
def _without_each(seen: Spectrum) -> Array:
    return seen.without_each(lambda spectra: slopes(spectra, seen.count))

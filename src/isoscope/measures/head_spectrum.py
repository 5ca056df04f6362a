"""Spectra of a head: how evenly do queries and keys vary, and where does the mean lie?"""

import numpy as np

from isoscope.errors import UndefinedError
from isoscope.measures.base import measure
from isoscope.measures.interval import interval
from isoscope.measures.isoscore import from_ratio
from isoscope.measures.participation import ratio
from isoscope.measures.view import isotropic_spectrum
from isoscope.measures.view.heads import (
    BothScatters,
    KeyScatters,
    QueryScatters,
    RowScatters,
)
from isoscope.measures.view.spectrum import no_spread
from isoscope.types import Array


def _participation(seen: RowScatters) -> float:
    """Return tr(C)^2 / |C|^2: no eigenvalue is needed."""
    covariance = seen.covariance
    length = float(np.einsum("ij,ij->", covariance, covariance))
    # what float32 leaves of rows that are all alike
    if length <= (1e-7 * float(np.trace(seen.second_moments))) ** 2:
        raise no_spread()
    return float(np.trace(covariance)) ** 2 / length


def _isoscore(seen: RowScatters) -> float:
    return from_ratio(_participation(seen), seen.mean.shape[1])


def _interval(seen: RowScatters, _value: float, _published: bool) -> tuple[float, float] | None:
    found = interval(seen, _participation, _participation(seen), logarithmic=True)
    if found is None:
        return None
    low, high = (from_ratio(end, seen.mean.shape[1]) for end in found)
    return low, high


def _level(n: int, d: int) -> float:
    return from_ratio(ratio(isotropic_spectrum(n, d)), d)


_MISLEADS = (
    "Blind to the mean: read it beside the cosine. Its interval is over eight shares of the "
    "documents, and is there where each of them has one."
)


@measure(
    "query-isoscore",
    reads=QueryScatters,
    isotropic=_level,
    collapsed=0.0,
    unmoved_by={"rotation", "scale", "shift"},
    cite="rudman2022",
    formula="(PR - 1) / (d - 1), PR = tr(C)^2 / |C|_F^2, C = covariance of queries",
    misleads=_MISLEADS,
    interval=_interval,
    bounds=(0.0, 1.0),
    offered="heads",
)
def query_isoscore(seen: QueryScatters) -> float:
    """Evenness of the variance of queries over the dimensions of a head."""
    return _isoscore(seen)


@measure(
    "key-isoscore",
    reads=KeyScatters,
    isotropic=_level,
    collapsed=0.0,
    unmoved_by={"rotation", "scale", "shift"},
    cite="rudman2022",
    formula="(PR - 1) / (d - 1), PR = tr(C)^2 / |C|_F^2, C = covariance of keys",
    misleads=_MISLEADS,
    interval=_interval,
    bounds=(0.0, 1.0),
    offered="heads",
)
def key_isoscore(seen: KeyScatters) -> float:
    """Evenness of the variance of keys over the dimensions of a head."""
    return _isoscore(seen)


def first_direction(seen: RowScatters) -> Array:
    """Return the first right singular vector of rows, on the side of their mean, (d,)."""
    first = np.linalg.eigh(seen.second_moments)[1][:, -1]
    return -first if first @ seen.whole < 0 else first


@measure(
    "query-first-share",
    reads=QueryScatters,
    isotropic=None,
    collapsed=1.0,
    unmoved_by={"rotation", "scale"},
    cite="godey2024",
    formula="((mean of q) . v)^2 / |mean of q|^2, v = first right singular vector of queries",
    misleads="A mean that is longer than the spread is the first singular vector by itself.",
    bounds=(0.0, 1.0),
    offered="heads",
)
def query_first_share(seen: QueryScatters) -> float:
    """Share of the mean query along the first right singular vector of the queries."""
    mean = seen.whole
    length = float(mean @ mean)
    if length <= 0:
        raise _no_mean("query-first-share")
    return min(float(first_direction(seen) @ mean) ** 2 / length, 1.0)


@measure(
    "key-first-cosine",
    reads=BothScatters,
    isotropic=None,
    collapsed=None,
    unmoved_by={"rotation", "scale"},
    cite="godey2024",
    formula="(mean of k) . v / |mean of k|, v = first right singular vector of queries, on the "
    "side of their mean",
    misleads="Its sign means little where query-first-share is small: v has no side then.",
    bounds=(-1.0, 1.0),
    offered="heads",
)
def key_first_cosine(seen: BothScatters) -> float:
    """Cosine between the mean key and the first right singular vector of the queries."""
    key = seen.mean_key
    length = float(np.linalg.norm(key))
    if length <= 0:
        raise _no_mean("key-first-cosine")
    return float(np.clip(first_direction(seen.queries) @ key / length, -1.0, 1.0))


def _no_mean(name: str) -> UndefinedError:
    return UndefinedError(
        f"{name} needs a mean that is not zero, got zero",
        hint="check the weights of this head; all its queries or keys cancel out",
        slug="only-zeros",
    )

"""Partition isotropy I(W): is the partition function the same in every direction?"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from isoscope.measures.base import Companion, measure
from isoscope.measures.interval import interval, quantile
from isoscope.measures.view import PartitionSums
from isoscope.types import Array

DRAWS = 8  # random clouds to compare with
MANY = 50_000  # rows from which on one draw is enough
_CHUNK = 4096


def log_ratio(seen: PartitionSums, *, published: bool = False) -> float:
    """Return log I(W) over both signs of every axis, or as published over one of them."""
    signs = (seen.plus,) if published else (seen.plus, seen.minus)  # (groups, d) each
    logs = np.concatenate([np.logaddexp.reduce(part, axis=0) for part in signs])
    return float(logs.min() - logs.max())


def as_published(seen: PartitionSums) -> float:
    """I(W) over one sign of each axis, the one the eigenvectors happen to have."""
    return float(np.exp(log_ratio(seen, published=True)))


def reference(seen: PartitionSums, *, published: bool = False) -> list[float]:
    """Return I(W) of random clouds with the norms of the rows and eigenvectors of their own."""
    draws = DRAWS if len(seen.lengths) <= MANY else 1
    return [_random_cloud(seen.lengths, seen.width, draw, published) for draw in range(draws)]


def _random_cloud(lengths: Array, d: int, draw: int, published: bool) -> float:
    """Return I(W) of rows of these lengths in random directions, made twice from one seed."""
    second = np.zeros((d, d))
    for rows in _rows(lengths, d, draw):
        second += rows.T @ rows
    axes = np.linalg.eigh(second)[1]
    logs = np.full(d if published else 2 * d, -np.inf)
    for rows in _rows(lengths, d, draw):
        along = rows @ axes
        if not published:
            along = np.concatenate([along, -along], axis=1)
        top = along.max(axis=0)
        logs = np.logaddexp(logs, top + np.log(np.exp(along - top).sum(axis=0)))
    return float(np.exp(logs.min() - logs.max()))


def _rows(lengths: Array, d: int, draw: int) -> Iterator[Array]:
    rng = np.random.Generator(np.random.PCG64([draw, d]))
    for start in range(0, len(lengths), _CHUNK):
        part = lengths[start : start + _CHUNK]
        rows = rng.standard_normal((len(part), d))
        yield rows * (part / np.linalg.norm(rows, axis=1))[:, None]


def _interval(
    seen: PartitionSums, _value: float, published: bool
) -> tuple[float, float] | None:
    """Return the interval of the logarithm, raised: the value may be too small for one."""
    logarithm = partial(log_ratio, published=published)
    ends = interval(seen, logarithm, logarithm(seen))
    return None if ends is None else (float(np.exp(ends[0])), float(np.exp(min(ends[1], 0.0))))


def _companions(seen: PartitionSums, published: bool) -> list[Companion]:
    logarithm = partial(log_ratio, published=published)
    log = logarithm(seen)
    around = interval(seen, logarithm, log) or (None, None)
    draws = reference(seen, published=published)
    mean = float(np.mean(draws))
    reach = quantile(len(draws) - 1) * float(np.std(draws, ddof=1)) if len(draws) > 1 else None
    low, high = (None, None) if reach is None else (mean - reach, mean + reach)
    return [Companion("log", log, *around), Companion("reference", mean, low, high)]


@measure(
    "partition",
    reads=PartitionSums,
    isotropic=None,
    collapsed=None,
    unmoved_by={"rotation"},
    cite="arora2016",
    formula="min Z(c) / max Z(c), Z(c) = sum exp(x . c), c = eigenvectors of X'X, both signs",
    misleads="Depends on the scale of the rows: the same cloud read 0.375, 0.141 and 0.020 at "
    "half, full and double size. Compare with partition-reference, a random cloud of the "
    "same norms.",
    published=as_published,
    companions=_companions,
    beside=("log", "reference"),
    interval=_interval,
    second_pass=True,
    bounds=(0.0, 1.0),
)
def partition(seen: PartitionSums) -> float:
    """Smallest over largest partition function along the principal axes, both signs."""
    return float(np.exp(log_ratio(seen)))

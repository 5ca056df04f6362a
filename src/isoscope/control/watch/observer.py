"""A quick look at a site: the few numbers a watch follows, from sums alone, no intervals.

They are those of the measures of the same names. Rows are counted once, on the device they
are on, and the sums of all processes are added before anything is computed.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from math import isfinite

import torch
from torch import Tensor

from isoscope.accumulate.directions import cosine_over_pairs
from isoscope.control.watch.sums import Sums
from isoscope.control.world import Join
from isoscope.registry import Registry

DEAD = 1e-6  # of the mean variance, below which a dimension says nothing


class Glance:
    """The rows of one site, boiled down: two halves of the documents, and directions."""

    def __init__(self) -> None:
        self.halves: list[Sums] = []
        self.units: Tensor | None = None  # (d,) sum of unit vectors
        self.directions = 0  # rows that have one
        self.rows = 0  # all of them, finite or not

    @torch.no_grad()
    def add(self, rows: Tensor, sequences: Tensor) -> None:
        """Take in rows (n, d), and the number of the sequence each is of."""
        if not self.halves:
            self.halves = [Sums(rows), Sums(rows)]
            self.units = torch.zeros(
                rows.shape[1], dtype=self.halves[0].dtype, device=rows.device
            )
        self.rows += len(rows)
        precise = rows if rows.dtype == torch.float64 else rows.float()
        for half, sums in enumerate(self.halves):
            sums.add(precise[sequences % 2 == half])
        lengths = torch.linalg.vector_norm(precise, dim=1)
        there = (lengths > 0) & torch.isfinite(lengths)
        units = precise[there] / lengths[there, None]
        assert self.units is not None
        self.units += units.sum(dim=0).to(self.units.dtype)
        self.directions += int(there.sum())

    def whole(self, like: Tensor, join: Join) -> "Whole":
        """Return the sums of all processes; one that has seen nothing takes part.

        `like` is any tensor (0, d) on the device of the model.
        """
        if not self.halves:
            self.halves = [Sums(like), Sums(like)]
            self.units = torch.zeros_like(self.halves[0].mean)
        a, b = self.halves
        both = _merged(a, b)
        assert self.units is not None
        counts = self.units.new_tensor([float(self.directions), float(self.rows)])
        packed = join.sum(torch.cat([self.units, counts]))
        count, scatter = both.joined(join)
        parts = [each.joined(join) for each in (a, b)]
        directions, rows = (int(each) for each in packed[-2:])
        return Whole(count, scatter, parts, packed[:-2], directions, rows)


@dataclass(frozen=True)
class Whole:
    """What all processes have seen of a site."""

    count: int
    scatter: Tensor  # (d, d) about the mean
    parts: Sequence[tuple[int, Tensor]]  # count and scatter of each half
    units: Tensor  # (d,)
    directions: int
    rows: int  # all of them, finite or not

    @property
    def lost(self) -> bool:
        """Whether rows were there and their numbers were not: NaN, infinite or too large."""
        return self.rows > 1 and (self.count < 2 or not isfinite(self.trace))

    @property
    def trace(self) -> float:
        """Sum of all variances, times the rows less one."""
        return float(self.scatter.diagonal().sum())


def _merged(a: Sums, b: Sums) -> Sums:
    both = deepcopy(a)
    if b.count:
        both.pool(b.count, b.mean, b.scatter)
    return both


def mean_cosine(seen: Whole) -> float | None:
    """Mean cosine between two different rows."""
    n = seen.directions
    return None if n < 2 else cosine_over_pairs(float(seen.units @ seen.units), n)


def effective_rank(seen: Whole) -> float | None:
    """Number of dimensions used: exp of the entropy of the covariance's spectrum."""
    if seen.count < 2 or not seen.trace > 0:
        return None
    values = torch.linalg.eigvalsh(seen.scatter).flip(0).clamp(min=0)
    values = values[: min(seen.count - 1, len(values))]
    share = values[values > 0] / values.sum()
    return float(torch.exp(-(share * share.log()).sum()))


def isoscore(seen: Whole) -> float | None:
    """How evenly variance is spread: (PR - 1) / (d - 1)."""
    d = len(seen.scatter)
    if seen.count < 2 or d < 2 or not seen.trace > 0:
        return None
    ratio = seen.trace**2 / float(seen.scatter.square().sum())
    return (ratio - 1) / (d - 1)


def isoscore_debiased(seen: Whole) -> float | None:
    """IsoScore from products across two halves of the documents."""
    (n, a), (m, b) = seen.parts
    d = len(a)
    if min(n, m) < 2 or d < 2:
        return None
    shared = float((a * b).sum())
    traces = float(a.diagonal().sum()) * float(b.diagonal().sum())
    return None if not shared > 0 else (traces / shared - 1) / (d - 1)


def top_share(seen: Whole) -> float | None:
    """Share of the variance along the direction of largest variance."""
    if seen.count < 2 or not seen.trace > 0:
        return None
    return float(torch.linalg.eigvalsh(seen.scatter)[-1]) / seen.trace


def dead_dimensions(seen: Whole) -> float | None:
    """Share of the dimensions in which rows hardly differ."""
    if seen.count < 2:
        return None
    variances = seen.scatter.diagonal()
    return float((variances <= DEAD * variances.mean()).double().mean())


GLANCES: Registry[Callable[[Whole], float | None]] = Registry("watched measure")
for _each in (
    mean_cosine, effective_rank, isoscore, isoscore_debiased, top_share, dead_dimensions,
):  # fmt: skip
    GLANCES.add(_each.__name__.replace("_", "-"), _each)

"""Spectra: of the covariance, of the raw second moments, of halves, of an isotropic cloud."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np

from isoscope.accumulate import Groups, GroupsSummary, Moments, MomentsSummary, Reservoir
from isoscope.accumulate.sums import lazy
from isoscope.blas import one_blas_thread
from isoscope.dataclass import dataclass
from isoscope.errors import UndefinedError
from isoscope.measures.view.axes import AXES, Axes, no_spread, refuse_few_rows
from isoscope.measures.view.parts import (
    EMPTY,
    Parts,
    SampledParts,
    SketchedParts,
    parts_of,
    top_axes,
    traces_with,
)
from isoscope.measures.view.summaries import GroupView, Summaries, View
from isoscope.types import Array, SpectrumCurve

POINTS = 96  # of a curve, evenly on a logarithmic axis
_FAR = 0.3  # of a value: a longer way is gone as it is, not to first order
_NEAR = 1e-3  # of a value: the way along which a slope is taken
_GRID = 4096  # nodes of the density of white rows


@dataclass(frozen=True, kw_only=True)
class Spectrum(GroupView):
    """Eigenvalues of the covariance, largest first, and each group's part in them.

    Without a group the eigenvalues are taken along the axes of the whole: exact to first
    order for any function of the spectrum, which is all an interval asks for.
    """

    needs = (Moments, Groups, Reservoir)
    for_intervals = (Groups, Reservoir)
    _spent: ClassVar[int] = 1  # rows that the mean has used up
    about_zero: ClassVar[bool] = False
    values: Array  # (d,)
    rank: int  # how many of them can be more than rounding
    rows: int
    energy: Array  # (groups, d)
    summaries: Summaries | None = None  # what halves are made of; None: this is a half
    sketched: int = 0  # so many of the longest axes groups are known along; 0: no sketches
    seen_rows: int = 0  # of a half, whose `rows` are those of the whole while it is measured

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the spectrum of all rows."""
        return cls.of_part(summaries, None)

    @classmethod
    def of_part(cls, summaries: Summaries, half: int | None) -> Self:
        """Return the spectrum of all rows, or of a half of the documents."""
        moments, parts = summaries.of(Moments), parts_of(summaries)
        axes = summaries.view(AXES[half])
        along, mine = axes.along(about_zero=cls.about_zero), axes.mine
        found = cls(
            values=along.values,
            rank=along.rank,
            rows=moments.count,
            documents=moments.documents,
            sizes=np.zeros(0),
            energy=along.energy,
            keys=np.zeros(0, dtype=np.uint64),
            summaries=summaries if half is None else None,
            seen_rows=0 if half is None else axes.count,
        )
        if parts is None:
            return found
        sketched = isinstance(parts, SketchedParts)
        return replace(
            found,
            sketched=top_axes(parts.groups.sketch.shape[2], found.width) if sketched else 0,
            sizes=parts.sizes if mine is None else parts.sizes[mine],
            keys=parts.keys if mine is None else parts.keys[mine],
            thinning=parts.thinning,
        )

    @property
    def count(self) -> int:
        """How many rows it rests on."""
        return self.rows

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return len(self.values)

    def without(self, group: int) -> Self:
        """Return the spectrum as if a group had never been seen."""
        self._refuse_without(group)
        return self.changed(values=np.maximum(self._left[group], 0.0))

    def _refuse_without(self, group: int) -> None:
        if self._has_all[group]:
            raise no_spread()

    @lazy
    def _has_all(self) -> Array:
        """Whether all that is spread out is in a group, (groups,)."""
        whole = self.values * ((self.seen_rows or self.rows) - self._spent)
        rounding = whole.max() * self.width * np.finfo(np.float64).eps
        return (whole - self.energy).max(axis=1) <= rounding

    @lazy
    def _left(self) -> Array:
        """The values without each group, (groups, d); noise may leave some below zero."""
        rows = self.seen_rows or self.rows
        left = np.maximum(rows - self.sizes - self._spent, 1.0)
        return (self.values * (rows - self._spent) - self.energy) / left[:, None]

    @lazy
    def _steps(self) -> tuple[Array, Array]:
        """How far values move without each group, and that over the values, (groups, d) each.

        Along empty axes groups show rounding alone, which would set the pace of all.
        """
        seen = self.values > EMPTY * self.values.max(initial=0.0)
        steps = np.where(seen, self._left - self.values, 0.0)
        sizes = np.divide(steps, self.values, out=np.zeros_like(steps), where=steps != 0)
        return steps, np.abs(sizes)

    def values_without(self, compute: Callable[[Self], float]) -> Array:
        """Return a measure without each group, (groups,), of one spectrum after the other."""
        return self.without_each(
            lambda spectra: np.array([compute(self.changed(values=each)) for each in spectra])
        )

    def without_each(self, compute: Callable[[Array], Array]) -> Array:
        """Return what is computed of many spectra, (k, d) to (k,), without each group.

        To first order where groups are sketched. How far values bend in one group adds to all
        of them alike, by the size of the group: that is bias, no spread, and single values of a
        sketch are too noisy to be taken away as they are. Only where one of the longest axes
        loses or gains much, it is: half of what lies between the spectrum without the group
        and its mirror image.
        """
        if self._has_all.any():
            raise no_spread()
        if not self.sketched:
            return compute(np.maximum(self._left, 0.0))
        (value,) = compute(self.values[None])
        steps, sizes = self._steps  # (groups, d) each
        found = np.full(self.groups, value)
        far = sizes[:, : self.sketched].max(axis=1, initial=0.0) > _FAR
        if far.any():
            large = np.where(np.arange(self.width) < self.sketched, steps[far], 0.0)
            without = compute(np.maximum(self.values + large, 0.0))
            mirrored = self.values - large
            there = mirrored.min(axis=1) >= 0
            if there.any():
                without[there] = value + (without[there] - compute(mirrored[there])) / 2
            found[far] = without
            steps, sizes = steps.copy(), sizes.copy()
            steps[far] -= large
            sizes[far] = np.where(large != 0, 0.0, sizes[far])
        most = sizes.max(axis=1, initial=0.0)
        moved = most > 0
        if moved.any():
            near = _NEAR / np.maximum(most[moved], 1.0)
            ahead, behind = (
                compute(self.values + (side * near)[:, None] * steps[moved]) for side in (1, -1)
            )
            found[moved] += (ahead - behind) / (2 * near)
        return found

    def halves(self) -> tuple[Self, Self]:
        """Return the same of each half of the documents."""
        return self._halves

    @lazy
    def _halves(self) -> tuple[Self, Self]:
        assert self.summaries is not None
        return self.of_part(self.summaries, 0), self.of_part(self.summaries, 1)

    def with_participation(self, ratio: float) -> Self:
        """Return a spectrum of this trace and participation ratio: all values but one equal.

        With b (1 + (d-1) x) and d - 1 times b (1 - x) the ratio is d / (1 + (d-1) x^2).
        """
        d = self.width
        x = np.sqrt((d / min(max(ratio, 1.0), float(d)) - 1) / (d - 1))
        values = np.full(d, 1 - x)
        values[0] = 1 + (d - 1) * x
        return replace(self, values=values * self.values.mean())


class RawSpectrum(Spectrum):
    """Eigenvalues of the second moments about zero: squared singular values over n."""

    _spent: ClassVar[int] = 0
    about_zero: ClassVar[bool] = True


@dataclass(frozen=True)
class HalfShares:
    """The shares of the groups of a half in its rows and in the traces that it is part of."""

    rows: Array  # (groups,)
    trace: Array  # (groups,) in tr C_a
    product: Array  # (groups,) in <C_a, C_b>


@dataclass(frozen=True)
class Halves(View):
    """Moments of two halves of the documents: products across them have no sampling bias.

    Groups of documents are part of a value too: they tell how much documents differ.
    """

    needs = (Moments, Groups, Reservoir)
    for_intervals = (Reservoir,)
    moments: MomentsSummary
    parts: Parts | None  # None: independent rows, and a value alone without an interval
    summaries: Summaries

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the view of moments and groups."""
        moments = summaries.of(Moments)
        parts = parts_of(summaries, always=not moments.independent)
        return cls(moments, parts, summaries)

    @property
    def count(self) -> int:
        """How many rows it rests on."""
        return self.moments.count

    @property
    def documents(self) -> int:
        """How many documents it rests on."""
        return self.moments.documents

    @property
    def whole(self) -> Spectrum:
        """The spectrum of both halves together."""
        return self.summaries.view(Spectrum)

    def covariances(self) -> tuple[Array, Array]:
        """Return the covariance of each half."""
        refuse_few_rows(self.moments)
        first, second = self.moments.halves
        return first.scatter / (first.count - 1), second.scatter / (second.count - 1)

    def unbiased_covariances(self) -> tuple[Array, Array]:
        """Return the covariance of each half with what few documents lack added to it.

        Of G documents of one length the covariance shows 1 - 1/G of the variance between
        them; the groups of the half tell how they differ.
        """
        first, second = self.covariances()
        if isinstance(self.parts, SketchedParts):
            for half, covariance in enumerate((first, second)):
                on_scatter, on_means = self.weights(half)
                means = self.parts.means(half, self.moments.halves[half].origin)
                covariance *= on_scatter
                covariance += on_means * (means.T @ means)
        return first, second

    @lazy
    def products(self) -> tuple[float, float]:
        """The product of the traces of both unbiased covariances, and their inner product."""
        first, second = self.unbiased_covariances()
        traces = float(np.trace(first) * np.trace(second))
        return traces, float(np.einsum("ij,ij->", first, second))

    @lazy
    def fourths(self) -> Array:
        """Sums over each group's sampled rows y about the mean, one line per group.

        How many, sum of |y|^2, of (y . y')^2 over pairs of the group, of |y|^4, and of
        y' M y with M the scatter of all rows: along its axes M is diagonal.
        """
        assert isinstance(self.parts, SampledParts)
        along = self.summaries.view(Axes).along(about_zero=False)
        pulls = along.shown @ (along.values * (self.count - 1))
        return np.column_stack([self.parts.fourths(), pulls])

    @lazy
    def shares(self) -> tuple[HalfShares, ...]:
        """The shares of the groups of each half; none where rows are independent."""
        if not isinstance(self.parts, SketchedParts):
            return ()
        first, second = self.unbiased_covariances()
        return self._shares(self.parts, 0, second), self._shares(self.parts, 1, first)

    def _shares(self, parts: SketchedParts, half: int, theirs: Array) -> HalfShares:
        ours = self.moments.halves[half]
        here = parts.groups.halves == half
        rows, traces = parts.within(half, ours.origin)
        crossed = traces_with(parts.groups, here, ours.origin, ours.scatter, theirs)
        # the parts of the scatter and of the means of groups, which add up to the covariance
        on_scatter, on_means = self.weights(half)
        means = parts.means(half, ours.origin)  # (groups, d)
        by_trace, by_product = (
            on_scatter * scattered / (ours.count - 1) + on_means * between
            for scattered, between in (
                (traces, np.vecdot(means, means)),
                (crossed, np.vecdot(means @ theirs, means)),
            )
        )
        return HalfShares(
            rows / ours.count, by_trace / by_trace.sum(), by_product / by_product.sum()
        )

    def weights(self, half: int) -> tuple[float, float]:
        """Return the weights of C and P in the unbiased covariance of a half."""
        assert isinstance(self.parts, SketchedParts)
        groups = self.parts.groups.only(self.parts.groups.halves == half)
        return unbiased_weights(self.moments.halves[half].count, groups)


def unbiased_weights(rows: float, groups: GroupsSummary) -> tuple[float, float]:
    """Return the weights of C and P whose sum is the covariance of endless documents.

    With W the covariance within documents, B that between them, n rows, and s the sum of
    squared lengths of documents, the scatter M about the mean, and the scatter P of the
    means of K groups, weighted by their rows n_k, are on average

        M = (n - 1) W + (n - s/n) B
        P = (K - 1) W + (sum s_k/n_k - s/n) B

    Solved for W + B = M / (n - 1) + (s/n - 1) / (n - 1) B, with C = M / (n - 1). No weight
    is below zero, so that products of such covariances are not either.
    """
    n, count = rows, groups.groups
    own = float(groups.pairs.sum()) / n
    lengths = float((groups.pairs / groups.sizes).sum())
    between = lengths - own - (count - 1) * (n - own) / (n - 1)
    if count < 2 or not (own > 1 and between > 0):
        # one group, documents of one row, or an old run that has no squared lengths
        return 1.0, 0.0
    share = min((own - 1) / ((n - 1) * between), 1 / (count - 1))
    return 1 - share * (count - 1), share


@lru_cache(maxsize=256)
def isotropic_spectrum(n: int, d: int) -> Array:
    """Eigenvalues of the covariance of n white rows, largest first, as their law has them.

    Marchenko and Pastur (1967): quantiles of the law for large n and d at a fixed ratio. Rows
    that are fewer than the dimensions leave eigenvalues of zero.
    """
    rank = min(max(n - 1, 1), d)
    ratio = d / max(n - 1, 1)
    low, high = (1 - np.sqrt(ratio)) ** 2, (1 + np.sqrt(ratio)) ** 2
    # Nodes crowd at both edges, where the density rises from zero like a square root.
    angle = (np.arange(_GRID) + 0.5) * np.pi / _GRID
    x = low + (high - low) * (1 - np.cos(angle)) / 2
    density = np.sqrt(np.maximum((x - low) * (high - x), 0)) / x
    mass = np.cumsum(density * np.sin(angle))
    share = (np.arange(rank) + 0.5) / rank
    values = np.interp(share, mass / mass[-1], x)[::-1]
    out = np.zeros(d)
    out[:rank] = values
    return out * (d / out.sum())


def effective_rows(moments: MomentsSummary) -> float:
    """Return the number of independent rows that would bias tr C^2 as much as these documents.

    With m independent rows E tr C^2 = tr S^2 (1 + 1/m) + (tr S)^2 / m. The left side is the
    plain value, the two halves of the documents estimate tr S^2 without bias, and the
    equation is solved for m. The result is at most the number of rows and at least the number
    of documents.
    """
    n = float(moments.count)
    if moments.independent:
        return n
    first, second = moments.halves
    least = float(min(max(moments.documents - 1, 2), n))
    if min(first.count, second.count) < 2:
        return least
    whole = moments.covariance
    a, b = (half.scatter / (half.count - 1) for half in (first, second))
    plain = float(np.vdot(whole, whole)) / float(np.trace(whole)) ** 2
    traces = float(np.trace(a)) * float(np.trace(b))
    if traces <= 0:
        return least
    unbiased = float(np.vdot(a, b)) / traces
    if plain <= unbiased:
        return n
    return float(np.clip((1 + unbiased) / (plain - unbiased), least, n))


def spectrum_curve(
    moments: MomentsSummary,
    rows: float,
    site: str = "rows",
    variant: str = "all",
    *,
    points: int = POINTS,
) -> SpectrumCurve:
    """Return eigenvalues divided by their average at some ranks, and the isotropic ones.

    `rows` is the effective number of rows.
    """
    with one_blas_thread():
        values = np.linalg.eigvalsh(moments.covariance)[::-1]
    width = len(values)
    rank = min(moments.count - 1, width)
    rounding = (
        values[0] * width * np.finfo(np.float32).eps
    )  # normalized rows lack one direction
    values = np.where((np.arange(width) < rank) & (values > rounding), values, 0.0)
    mean = values.mean()
    if not mean > 0:
        raise UndefinedError(
            "a spectrum needs rows that differ, got identical rows",
            hint="check how the vectors were made; all of them are the same",
            slug="no-spread",
        )
    places = np.arange(width)
    if width > points:
        places = np.unique(np.geomspace(1, width, points).round().astype(int)) - 1
    white = isotropic_spectrum(max(int(rows), 2), width)
    return SpectrumCurve(
        site,
        variant,
        rank=places + 1,
        value=values[places] / mean,
        isotropic=white[places] / white.mean(),
        rows=float(rows),
    )

"""Each group's part in the second moments: from sketches, or from the sample of rows.

Rows of a document depend on each other, so that only sums over whole documents show how far
a reading may be off: their groups are kept in sketch. Independent rows need no such sums: a
sample of them shows the same, exactly and at no cost.
"""

from collections.abc import Iterator
from math import sqrt
from typing import Self

import numpy as np

from isoscope.accumulate import (
    Groups,
    GroupsSummary,
    Moments,
    MomentsSummary,
    Reservoir,
    ReservoirSummary,
)
from isoscope.accumulate.block import directions
from isoscope.accumulate.sums import lazy
from isoscope.dataclass import dataclass
from isoscope.measures.view.summaries import Summaries, View
from isoscope.types import Array

_TINY = 1e-6  # of the largest: smaller eigenvalues of a float32 sketch are rounding
_CELLS = 8  # groups of sampled rows, of about 64 each, that are worked on at once
_BATCH = 8  # groups whose sketches are worked on at once
EMPTY = 1e-12  # of the largest: along a shorter axis there is nothing but rounding
_TRIANGLE = 6  # the smallest triangle that is inverted by itself
_DOMINANT = 0.1  # of a trace: a longer axis is seen by every sketch as it is
_SAFE = 1e-5  # of the largest: with no smaller eigenvalue a matrix has a plain inverse


@dataclass(frozen=True)
class PrincipalAxes:
    """Axes V of the covariance of some rows, and those of their second moments about zero.

    Values are by whether they are about zero; those that nobody reads are not there. Axes
    about zero are V times `turn`.
    """

    mean: Array  # (d,)
    vectors: Array  # (d, d), V
    values: dict[bool, Array]  # (d,) in the order of the axes
    turn: Array  # (d, d); empty where nothing is about zero


@dataclass(frozen=True)
class SketchedParts:
    """Groups of documents, whose scatters are known by their sketches."""

    groups: GroupsSummary
    thinning: float = 1.0

    @property
    def sizes(self) -> Array:
        """Rows in each group."""
        return self.groups.sizes

    @property
    def keys(self) -> Array:
        """Which groups of documents they are."""
        return self.groups.keys

    def along(self, axes: PrincipalAxes, here: Array | None = None) -> dict[bool, Array]:
        """Return each group's second moment along each axis, (groups, d).

        With `here`, which groups these axes are of, only of those.
        """
        groups = self.groups if here is None else self.groups.only(here)
        return energies_along(groups, axes)

    def within(self, half: int, centre: Array) -> tuple[Array, Array]:
        """Return rows and scatter traces of the groups of a half."""
        here = self.groups.halves == half
        step = self.groups.mean[here] - centre
        rows = self.groups.sizes[here]
        return rows, self.groups.trace[here] + rows * np.einsum("kd,kd->k", step, step)

    def means(self, half: int, centre: Array) -> Array:
        """Return the means of the groups of a half about a centre, times the root of rows.

        (groups, d): the sum of their squares is the scatter between groups.
        """
        here = self.groups.halves == half
        return (self.groups.mean[here] - centre) * np.sqrt(self.groups.sizes[here])[:, None]


@dataclass(frozen=True)
class SampledParts:
    """Groups of sampled rows, standing for groups of all rows."""

    sample: ReservoirSummary
    moments: MomentsSummary

    @property
    def keys(self) -> Array:
        """Which groups of rows they are."""
        return self.sample.keys

    @property
    def scale(self) -> float:
        """How many rows each sampled one stands for."""
        return self.moments.count / self.sample.count

    @property
    def sizes(self) -> Array:
        """Rows in each group, of all rows."""
        return np.bincount(self.sample.cells) * self.scale

    @lazy
    def thinning(self) -> float:
        """All rows know more than the sample by the root of their number.

        Unless the sample has missed the longest of them: the sum of fourth powers, which
        is known of all rows, tells.
        """
        sampled = self.scale * sum(
            float(np.square(np.vecdot(rows, rows)).sum())
            for _, rows, _ in self._some_cells(self.moments.mean)
        )
        missed = self.moments.whole.quartic / sampled if sampled > 0 else 1.0
        return sqrt(max(missed, 1.0) / self.scale)

    def along(self, axes: PrincipalAxes, here: Array | None = None) -> dict[bool, Array]:
        """Return each group's second moment along each axis, (groups, d).

        With `here`, which groups these axes are of, only of those.
        """
        shape = (len(self.keys), len(axes.mean))
        found = {about_zero: np.empty(shape) for about_zero in axes.values}
        step = axes.mean @ axes.vectors  # from zero to the mean, along the axes
        for cells, part, starts in self._some_cells(axes.mean, here):
            turned = part @ axes.vectors
            if False in found:
                found[False][cells] = _sums_of_squares(turned, starts)
            if True in found:
                turned += step
                found[True][cells] = _sums_of_squares(turned @ axes.turn, starts)
        return found if here is None else {each: found[each][here] for each in found}

    def fourths(self) -> Array:
        """Return sums over each group's sampled rows y, about the mean of all.

        One line per group: how many, sum of |y|^2, sum of (y . y')^2 over pairs of the
        group, sum of |y|^4.
        """
        out: list[tuple[float, ...]] = []
        for _, part, starts in self._some_cells(self.moments.mean):
            for rows in np.split(part, starts[1:]):
                r = np.vecdot(rows, rows)
                own = np.square(rows @ rows.T).sum()
                out.append((len(rows), r.sum(), own, np.square(r).sum()))
        return np.array(out)

    def _some_cells(
        self, centre: Array, here: Array | None = None
    ) -> Iterator[tuple[Array, Array, Array]]:
        """Yield some groups at a time: which, their sampled rows, and where each begins.

        Rows are about a centre, in float64: all at once are many, and those of one group too
        few for a fast product.
        """
        sizes = np.bincount(self.sample.cells)
        chosen = np.arange(len(sizes)) if here is None else np.flatnonzero(here)
        order = np.argsort(self.sample.cells, kind="stable")
        ends = np.cumsum(sizes)
        for start in range(0, len(chosen), _CELLS):
            cells = chosen[start : start + _CELLS]
            rows = [order[ends[cell] - sizes[cell] : ends[cell]] for cell in cells]
            starts = np.cumsum([0, *map(len, rows)])[:-1]
            yield cells, self.sample.rows[np.concatenate(rows)] - centre, starts


def _sums_of_squares(rows: Array, starts: Array) -> Array:
    """Return the sum of squares of each column over the rows of each group, (groups, d)."""
    parts = np.split(rows, starts[1:])
    return np.array([np.einsum("ij,ij->j", part, part) for part in parts])


Parts = SketchedParts | SampledParts


def parts_of(summaries: Summaries, *, always: bool = False) -> Parts | None:
    """Return the parts of rows in documents, or of independent rows.

    None without intervals, unless a value is made of them too.
    """
    if not summaries.intervals and not always:
        return None
    return summaries.view(GroupParts).parts


@dataclass(frozen=True)
class GroupParts(View):
    """The parts of groups, made once for all views that look at second moments."""

    needs = (Moments, Groups, Reservoir)
    parts: Parts
    rows: int

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the parts of rows in documents, or of independent rows."""
        moments = summaries.of(Moments)
        if moments.independent:
            return cls(SampledParts(summaries.of(Reservoir), moments), moments.count)
        return cls(SketchedParts(summaries.of(Groups)), moments.count)

    @property
    def count(self) -> int:
        """How many rows they rest on."""
        return self.rows


def calibrate(parts: Array, known: Array) -> Array:
    """Return the parts of each group scaled so that they add up to what is known exactly.

    Sketches err alike in all groups; what they share in error cancels here.
    """
    total = parts.sum(axis=0)
    return parts * np.divide(known, total, out=np.zeros_like(total), where=total > 0)


def factors(sketch: Array) -> Array:
    """Return for each group a factor L of its sketched scatter, (groups, d, rank).

    Nystroem: a positive scatter T seen as B = T W has T ~ B (W' B)^-1 B' = L L', and what is
    left out is positive too.
    """
    seen = directions(sketch.shape[1])[:, : sketch.shape[2]].T @ sketch  # (groups, rank, rank)
    return sketch @ _inverse_root((seen + seen.transpose(0, 2, 1)) / 2)


def _inverse_root(matrices: Array) -> Array:
    """Return a root R of each inverse, R R' = M^-1, (k, rank, rank).

    Only R R' is ever used. Where no eigenvalue of M can be rounding, R is the inverse of a
    Cholesky factor, in a third of the time.
    """
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            roots = _inverse_of_lower(np.linalg.cholesky(matrices)).transpose(0, 2, 1)
            # the largest and the smallest eigenvalue lie within tr M and 1 / tr M^-1
            reach = np.trace(matrices, axis1=1, axis2=2) * np.einsum("kij,kij->k", roots, roots)
    except np.linalg.LinAlgError:
        return _eigen_roots(matrices)
    doubtful = ~(reach < 1 / _SAFE)
    if doubtful.any():
        roots[doubtful] = _eigen_roots(matrices[doubtful])
    return roots


def _inverse_of_lower(matrices: Array) -> Array:
    """Return the inverse of each lower triangular matrix, (k, n, n).

    From the inverses of two triangles and a product: LAPACK's inverse of any matrix takes
    three times as long.
    """
    count, n = matrices.shape[:2]
    half = n // 2
    if n % 2 or half < _TRIANGLE:
        return np.linalg.inv(matrices)
    corners = np.concatenate([matrices[:, :half, :half], matrices[:, half:, half:]])
    upper, lower = np.split(_inverse_of_lower(corners), [count])
    out = np.zeros_like(matrices)
    out[:, :half, :half], out[:, half:, half:] = upper, lower
    out[:, half:, :half] = -lower @ matrices[:, half:, :half] @ upper
    return out


def _eigen_roots(matrices: Array) -> Array:
    """Return V l^-1/2 of each matrix V l V', (k, rank, rank); zero where l is rounding."""
    values, vectors = np.linalg.eigh(matrices)
    floor = _TINY * np.maximum(values[:, -1:], np.finfo(np.float64).tiny)
    scale = np.where(values > floor, 1 / np.sqrt(np.maximum(values, floor)), 0.0)
    return vectors * scale[:, None, :]


def _batches(groups: GroupsSummary) -> Iterator[GroupsSummary]:
    """Yield a few groups at a time, whose sketches stay in the cache; at least one batch."""
    for start in range(0, max(groups.groups, 1), _BATCH):
        yield groups.only(slice(start, start + _BATCH))


def _times(factor: Array, matrix: Array) -> Array:
    """Return L' M of every factor L, (groups, rank, d), in one product."""
    groups, d, rank = factor.shape
    return (factor.transpose(0, 2, 1).reshape(-1, d) @ matrix).reshape(groups, rank, -1)


def energy_along(groups: GroupsSummary, centre: Array, values: Array, vectors: Array) -> Array:
    """Return each group's second moment about a centre along each eigenvector, (groups, d)."""
    axes = PrincipalAxes(centre, vectors, {False: values}, np.zeros((0, 0)))
    return energies_along(groups, axes)[False]


def energies_along(groups: GroupsSummary, axes: PrincipalAxes) -> dict[bool, Array]:
    """Return each group's second moment along each axis, (groups, d), about mean and zero.

    Values ascend. Along the longest axes, half as many as the sketch has directions, the
    sketch shows a group as it is. Along each of the others it shows little, but together they
    are seen without bias: u'T_k W W'u, less what the longest axes add to it. Single numbers
    are noisy there and may be below zero; they are made for sums over many axes.
    """
    vectors = np.ascontiguousarray(axes.vectors)
    rank, width = groups.sketch.shape[2], len(axes.mean)
    seen = directions(width)[:, :rank].T @ vectors  # (rank, d)
    seen *= sqrt(width / max(rank, 1))
    seen_by = {about: seen @ axes.turn if about else seen for about in axes.values}
    found: dict[bool, list[tuple[Array, Array]]] = {about: [] for about in axes.values}
    for part in _batches(groups):
        sketches = Sketches.of(part, vectors)
        for about, values in axes.values.items():
            centre = np.zeros_like(axes.mean) if about else axes.mean
            trace, within, along = sketches.about(centre, axes.turn if about else None)
            found[about].append(_energy_along(trace, within, along, values, seen_by[about]))
    return {
        about: _share_out(groups, axes, about, found[about], seen_by[about]) for about in found
    }


@dataclass(frozen=True)
class Sketches:
    """Sketches of a few groups as their own directions and the axes of all see them.

    About another centre they differ by an outer product: one large product serves several.
    """

    groups: GroupsSummary
    vectors: Array  # (d, d), V
    within: Array  # (groups, rank, rank), W'T_k W
    along: Array  # (groups, rank, d), W'T_k V

    @classmethod
    def of(cls, groups: GroupsSummary, vectors: Array) -> Self:
        """Return the sketches of groups about their own means."""
        sketch = groups.sketch.transpose(0, 2, 1)  # (groups, rank, d), as it lies in memory
        count, rank, width = sketch.shape
        along = (sketch.reshape(-1, width) @ vectors).reshape(count, rank, width)
        return cls(groups, vectors, sketch @ directions(width)[:, :rank], along)

    def about(self, centre: Array, turn: Array | None) -> tuple[Array, Array, Array]:
        """Return traces, and both about a centre; along axes that are turned, if they are."""
        groups, (_, rank, width) = self.groups, self.along.shape
        step = groups.mean - centre  # (groups, d)
        trace = groups.trace + groups.sizes * np.vecdot(step, step)
        weights = groups.sizes[:, None]
        seen = step @ directions(width)[:, :rank]  # (groups, rank)
        within = self.within + seen[:, :, None] * (weights * seen)[:, None, :]
        along = self.along + seen[:, :, None] * ((weights * step) @ self.vectors)[:, None, :]
        if turn is not None:
            along = (along.reshape(-1, width) @ turn).reshape(along.shape)
        return trace, within, along


def _share_out(
    groups: GroupsSummary,
    axes: PrincipalAxes,
    about_zero: bool,
    found: list[tuple[Array, Array]],
    seen: Array,
) -> Array:
    """Return second moments of groups that add up to those of all along every axis."""
    values, (rank, width) = axes.values[about_zero], seen.shape
    shown, other = (np.concatenate(part) for part in zip(*found, strict=True))
    tail = np.arange(width) < (width - top_axes(rank, width))
    tail &= values > EMPTY * values.max(initial=0.0)
    if not tail.any():
        return shown
    # about what a group of that size has on average, of which all sums are known
    step = groups.mean - (0.0 if about_zero else axes.mean)
    trace = groups.trace + groups.sizes * np.vecdot(step, step)
    whole = values * (trace.sum() / values.sum())
    share = (groups.sizes / groups.sizes.sum())[:, None]
    off = other - share * (whole * np.vecdot(seen.T, seen.T))
    off -= share * off.sum(axis=0)
    return np.where(tail, share * whole + off, calibrate(shown, whole))


def top_axes(rank: int, width: int) -> int:
    """Return how many axes a sketch shows as they are: all of them if it is as wide."""
    return width if rank >= width else rank // 2


def _energy_along(
    trace: Array, within: Array, along: Array, values: Array, seen: Array
) -> tuple[Array, Array]:
    """Return what is seen along each axis by factors, and by the directions themselves.

    What factors do not show is spread over the axes as the whole cloud is. `along` is
    overwritten.
    """
    rank, width = seen.shape
    turned = _inverse_root((within + within.transpose(0, 2, 1)) / 2).transpose(0, 2, 1) @ along
    shown = np.einsum("krd,krd->kd", turned, turned)  # (groups, d)
    rest = np.maximum(trace - shown.sum(axis=1), 0.0)
    basis = _inverse_root(turned @ turned.transpose(0, 2, 1)).transpose(0, 2, 1) @ turned
    hidden = values * np.clip(1 - np.einsum("krd,krd->kd", basis, basis), 0, 1)
    total = hidden.sum(axis=1, keepdims=True)
    share = np.divide(hidden, total, out=np.zeros_like(hidden), where=total > 0)
    shown += rest[:, None] * share
    top = top_axes(rank, width)
    if top == width:
        return shown, shown
    # W'T_k without what it has along the longest axes
    turn = seen[:, -top:] @ turned[:, :, -top:].transpose(0, 2, 1)  # (groups, rank, rank)
    along *= sqrt(width / rank)
    along -= turn @ turned
    return shown, np.einsum("krd,rd->kd", along, seen)


def traces_with(
    groups: GroupsSummary, here: Array, centre: Array, scatter: Array, other: Array
) -> Array:
    """Return tr(T_k C) for chosen groups k, T_k their scatters about a centre.

    The scatters add up to one that is known. Along axes that have a tenth of C groups are
    known as they are, along the others by what the directions of the sketch see of them.
    """
    chosen = groups.only(here)
    rank, width = chosen.sketch.shape[2], len(other)
    if rank >= width:  # sketches are scatters
        _, own = chosen.about(np.broadcast_to(centre, chosen.mean.shape))
        known = np.einsum("ij,ij->", scatter, other)
        return calibrate(np.einsum("kde,de->k", own, other), known)
    axes, lengths = _dominant_axes(other, rank)
    rest = other - (axes * lengths) @ axes.T
    seen = directions(width)[:, :rank] * sqrt(width / max(rank, 1))
    tail = seen - axes @ (axes.T @ seen)
    pulled = rest @ tail
    by_axis = np.einsum("dt,dt->t", axes, scatter @ axes)
    found = [
        _traces_with(part, centre, scatter, (axes, lengths, by_axis), seen, pulled)
        for part in _batches(chosen)
    ]
    shown, off = (np.concatenate(part) for part in zip(*found, strict=True))
    along = by_axis @ lengths
    share = chosen.sizes / chosen.sizes.sum()
    off -= share * off.sum()
    beyond = np.einsum("ij,ij->", scatter, other) - along
    return calibrate(shown, along) + share * beyond + off


def _dominant_axes(matrix: Array, rank: int) -> tuple[Array, Array]:
    """Return axes of a matrix that have much of it each, if any, and the lengths along them."""
    basis = np.linalg.qr(matrix @ (matrix @ directions(len(matrix))[:, :rank]))[0]
    (lengths,), (turn,) = np.linalg.eigh((basis.T @ matrix @ basis)[None])
    far = lengths > _DOMINANT * np.trace(matrix)
    return basis @ turn[:, far], lengths[far]


def _traces_with(
    chosen: GroupsSummary,
    centre: Array,
    scatter: Array,
    dominant: tuple[Array, Array, Array],
    seen: Array,
    pulled: Array,
) -> tuple[Array, Array]:
    """Return the traces along dominant axes of C, and what the directions see of others.

    What factors do not show along those axes is spread as the whole scatter is.
    """
    axes, lengths, by_axis = dominant
    trace, sketch = chosen.about(np.broadcast_to(centre, chosen.mean.shape))
    # <T W, R W> with R what C has besides those axes U
    off = sqrt(len(seen) / seen.shape[1]) * np.einsum("kdr,dr->k", sketch, pulled)
    if not len(lengths):
        return np.zeros_like(off), off
    factor = factors(sketch)
    turned = _times(factor, axes)  # (k, rank, axes)
    shown = np.einsum("krt,krt,t->k", turned, turned, lengths)
    root = _inverse_root(factor.transpose(0, 2, 1) @ factor)
    within = root.transpose(0, 2, 1) @ turned
    hidden = by_axis * np.clip(1 - np.einsum("krt,krt->kt", within, within), 0, 1)
    basis = (factor @ root).transpose(0, 2, 1)  # (k, rank, d)
    outside = np.trace(scatter) - np.einsum("krd,krd->k", basis @ scatter, basis)
    rest = np.maximum(trace - np.einsum("kdr,kdr->k", factor, factor), 0.0)
    shown += rest * (hidden @ lengths) / np.maximum(outside, _TINY * np.trace(scatter))
    # less <T U U'W, R W>
    near = turned @ (axes.T @ seen)  # (k, rank, directions)
    off -= np.einsum("krs,krs->k", near, factor.transpose(0, 2, 1) @ pulled)
    return shown, off

"""How much second moment each group has along given axes, told from its sketch."""

import numpy as np

from isoscope.accumulate import GroupsSummary
from isoscope.accumulate.block import directions
from isoscope.types import Array

_TINY = 1e-6  # of the largest: smaller eigenvalues of a float32 sketch are rounding


def factors(groups: GroupsSummary, centres: Array) -> tuple[Array, Array]:
    """Return for each group a factor L, (groups, d, rank), and the trace L L' leaves out.

    Nystroem: a positive scatter T seen as B = T W has T ~ B (W' B)^-1 B' = L L', and what is
    left out is positive too.
    """
    trace, sketch = groups.about(centres)
    seen = directions(sketch.shape[1]).T @ sketch  # (groups, rank, rank)
    values, vectors = np.linalg.eigh((seen + seen.transpose(0, 2, 1)) / 2)
    floor = _TINY * np.maximum(values[:, -1:], np.finfo(np.float64).tiny)
    scale = np.where(values > floor, 1 / np.sqrt(np.maximum(values, floor)), 0.0)
    factor = sketch @ (vectors * scale[:, None, :])
    rest = trace - np.einsum("kdr,kdr->k", factor, factor)
    return factor, np.maximum(rest, 0.0)


def spanned(factor: Array) -> Array:
    """Return an orthonormal basis of each factor's columns; empty columns stay zero."""
    values, vectors = np.linalg.eigh(factor.transpose(0, 2, 1) @ factor)
    floor = _TINY * np.maximum(values[:, -1:], np.finfo(np.float64).tiny)
    scale = np.where(values > floor, 1 / np.sqrt(np.maximum(values, floor)), 0.0)
    return factor @ (vectors * scale[:, None, :])


def along(groups: GroupsSummary, centre: Array, values: Array, vectors: Array) -> Array:
    """Return each group's second moment about a centre along each eigenvector, (groups, d).

    What the sketch does not show is spread over the axes as the whole cloud is.
    """
    factor, rest = factors(groups, np.broadcast_to(centre, groups.mean.shape))
    turned = vectors.T @ factor  # (groups, d, rank)
    shown = np.einsum("kdr,kdr->kd", turned, turned)
    basis = spanned(turned)
    hidden = values * np.clip(1 - np.einsum("kdr,kdr->kd", basis, basis), 0, 1)
    total = hidden.sum(axis=1, keepdims=True)
    share = np.divide(hidden, total, out=np.zeros_like(hidden), where=total > 0)
    return shown + rest[:, None] * share


def crossed(groups: GroupsSummary, here: Array, centre: Array, other: Array) -> Array:
    """Return tr(T_k C) for chosen groups k, T_k the scatter about a centre.

    The trace that the sketch of T_k does not show is taken to lie as C does.
    """
    centres = np.broadcast_to(centre, groups.mean.shape)
    factor, rest = (part[here] for part in factors(groups, centres))
    shown = np.einsum("kdr,kdr->k", factor, other @ factor)
    basis = spanned(factor)
    turned = other @ basis
    within = np.einsum("kdr,kdr->k", basis, turned)
    within_twice = np.einsum("kdr,kdr->k", turned, turned)
    trace, length = np.trace(other), np.einsum("ij,ij->", other, other)
    outside = np.maximum(trace - within, 0.0)
    ratio = np.divide(
        np.maximum(length - within_twice, 0.0),
        outside,
        out=np.zeros_like(outside),
        where=outside > 1e-12 * trace,
    )
    return shown + rest * ratio

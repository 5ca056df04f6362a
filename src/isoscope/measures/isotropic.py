"""What an isotropic cloud of n rows in d dimensions would show: its eigenvalues."""

from functools import lru_cache

import numpy as np

from isoscope.types import Array

_GRID = 4096


@lru_cache(maxsize=256)
def spectrum(n: int, d: int) -> Array:
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

"""Curves of which it is known whether they jump, and pairs of which it is known who leads."""

import numpy as np


def autoregressive(shocks, memory):
    curves = np.array(shocks, dtype=float)
    if memory < 1:
        curves[:, 0] /= np.sqrt(1 - memory**2)
    for i in range(1, curves.shape[1]):
        curves[:, i] += memory * curves[:, i - 1]
    return curves


def sigmoids(random, count, n, height=10.0):
    middle = random.uniform(0.2, 0.8, (count, 1)) * n
    width = random.uniform(1 / 16, 1 / 6, (count, 1)) * n
    return height / (1 + np.exp(-(np.arange(n) - middle) / width))


def of_kind(kind, random, count, n):
    """Return curves without a jump: `ar-0.5`, `walk` or `sigmoid`."""
    shocks = random.normal(size=(count, n))
    if kind == "walk":
        return shocks.cumsum(axis=1)
    if kind == "sigmoid":
        return sigmoids(random, count, n) + shocks
    return autoregressive(shocks, float(kind.removeprefix("ar-")))

"""Sums of rows: NumPy's covariance, however the rows were cut."""

import numpy as np
import torch

from isoscope.control.watch.sums import Sums
from isoscope.control.world import World


def test_count_mean_and_scatter_are_those_of_numpy_however_cut():
    rows = np.random.default_rng(0).normal(5.0, 0.1, size=(300, 6)).astype(np.float32)
    sums = Sums(torch.from_numpy(rows[:0]))
    for part in np.split(rows, [1, 40, 41, 200]):
        sums.add(torch.from_numpy(part))
    count, scatter = sums.joined(World())
    known = np.cov(rows.astype(np.float64).T) * 299
    assert count == 300
    # Float32 blocks about their own means.
    assert np.allclose(scatter.numpy(), known, rtol=1e-4, atol=1e-5)
    assert np.allclose(sums.mean.numpy(), rows.mean(axis=0, dtype=np.float64), rtol=1e-6)


def test_rows_that_are_not_finite_are_left_out():
    rows = torch.randn(20, 3, generator=torch.manual_seed(0))
    sums = Sums(rows)
    broken = rows.clone()
    broken[4, 1], broken[7, 0] = float("nan"), float("inf")
    sums.add(broken)
    assert sums.count == 18
    sums.add(rows[:0])
    assert sums.count == 18 and bool(sums.scatter.isfinite().all())

"""Singular values of a type's occurrences."""

import numpy as np
import pytest

from isoscope.measures.view.token_types import first_share, scale_down


@pytest.mark.parametrize("shape", [(5, 12), (16, 3)])
def test_the_share_is_that_of_the_singular_values(shape):
    rows = np.random.default_rng(0).normal(size=shape) + 0.5
    values = np.linalg.svd(rows, compute_uv=False) ** 2
    assert first_share(rows) == pytest.approx(values[0] / values.sum(), abs=1e-12)


def test_zeros_have_no_share():
    assert first_share(np.zeros((5, 3))) is None
    assert scale_down(np.zeros((0, 3), dtype=np.float32)).shape == (0, 3)


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_size_does_not_matter(size):
    rows = np.random.default_rng(1).normal(size=(6, 4))
    assert first_share(scale_down(rows * size)) == pytest.approx(first_share(rows), abs=1e-12)

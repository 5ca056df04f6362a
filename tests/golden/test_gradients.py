"""The gradient of IsoScore* as the released code has it, zeta = 0.1, C0 = I.

gradients.npz was computed with I-STAR/regularizers.py of bcbi-edu/p_eickhoff_isoscore@1edad0b,
which differentiates through singular values. Its constants pass through a float32 square root;
1e-5 allows for that.
"""

from pathlib import Path

import numpy as np
import pytest
import torch

from isoscope.control import IStar

GRADIENTS = np.load(Path(__file__).with_name("gradients.npz"))


def normal(seed, n, d):
    return np.random.default_rng(seed).standard_normal((n, d))


CLOUDS = {
    "A_decay_n200_d16": lambda: normal(1, 200, 16) * np.arange(1, 17) ** -0.5,
    "B_nltd_n48_d96": lambda: normal(2, 48, 96),
}


@pytest.mark.parametrize("name", CLOUDS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_gradient_is_that_of_the_released_code(name, dtype):
    rows = torch.tensor(CLOUDS[name](), dtype=dtype, requires_grad=True)
    identity = torch.eye(rows.shape[1], dtype=torch.float64)
    loss = IStar(zeta=0.1, rows=None, towards=identity)(rows)
    loss.backward()
    found = -rows.grad.double().numpy()  # the loss is 1 - IsoScore*
    expected = GRADIENTS[name]
    assert np.linalg.norm(found - expected) < 1e-5 * np.linalg.norm(expected)


def test_every_reference_is_looked_at():
    assert set(GRADIENTS) == set(CLOUDS)

"""CosReg: the mean cosine of the last layer, by either normaliser."""

import pytest
import torch

from isoscope.api import measure
from isoscope.control import CosReg, IStar


def rows(n=40, d=6, seed=0):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed)).double() + 0.5


def by_definition(cloud):
    """Return what the released code computes: sum of all cosines less n, over n^2."""
    units = torch.nn.functional.normalize(cloud, dim=1)
    n = len(cloud)
    return ((units @ units.T).sum() - n) / n**2


def test_it_is_the_mean_cosine():
    (reading,) = measure(rows().numpy(), measures=["mean-cosine"])
    assert CosReg()(rows()).item() == pytest.approx(reading.value, abs=1e-9)


def test_as_published_it_divides_by_the_square_of_n():
    ours, theirs = rows().requires_grad_(), rows().requires_grad_()
    value, expected = CosReg(as_published=True)(ours), by_definition(theirs)
    value.backward()
    expected.backward()
    assert value.item() == pytest.approx(expected.item(), rel=1e-12)
    torch.testing.assert_close(ours.grad, theirs.grad)


@pytest.mark.parametrize(
    ("seed", "n", "d", "published"),
    [(2, 48, 96, -0.0010876103848652674), (4, 1000, 32, -0.00027688990956129715)],
)
def test_as_published_it_is_the_released_code(seed, n, d, published):
    # I-STAR/regularizers.py of bcbi-edu/p_eickhoff_isoscore@1edad0b on these rows
    import numpy as np

    cloud = torch.from_numpy(np.random.default_rng(seed).standard_normal((n, d)))
    assert CosReg(as_published=True)(cloud).item() == pytest.approx(published, abs=1e-9)


def test_only_the_last_layer_counts_unless_requested():
    layers = [rows(seed=1), rows(seed=2)]
    assert CosReg()(layers) == CosReg()(layers[1])
    assert CosReg(layers=0)(layers) == CosReg()(layers[0])


def test_it_moves_the_mean_and_not_the_shape():
    cloud = (rows(200) * torch.arange(1, 7) ** -1.0).requires_grad_()
    before = IStar(zeta=0.0)(cloud).item(), CosReg()(cloud).item()
    optimiser = torch.optim.SGD([cloud], lr=50.0)
    for _ in range(20):
        optimiser.zero_grad()
        CosReg()(cloud).backward()
        optimiser.step()
    after = IStar(zeta=0.0)(cloud).item(), CosReg()(cloud).item()
    assert after[1] < before[1] / 2
    assert abs(after[0] - before[0]) < 0.2 * abs(after[1] - before[1])

"""DebiasedIsotropy: its value on rows and on documents, and where it holds still."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from isoscope.api import measure
from isoscope.control import DebiasedIsotropy
from isoscope.control.penalty.isoscore_debiased import LEAST, debiased_score
from isoscope.control.penalty.row_selection import RealTokens, RowSelection
from isoscope.control.processes import World


def batch(sequences, length, width, rho=0.3, dtype=torch.float64, power=-1.0, seed=0):
    """Return hidden states in which tokens of one sequence resemble each other."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    scales = torch.arange(1, width + 1, dtype=torch.float64) ** power
    own, shared = normal(sequences, length, width), normal(sequences, 1, width)
    return ((own * (1 - rho) ** 0.5 + shared * rho**0.5) * scales + 2.0).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("sequences", "length", "width"), [(16, 12, 8), (6, 4, 64)])
@pytest.mark.parametrize("padded", [False, True])
def test_on_documents_the_value_is_that_of_products_across_halves(
    sequences, length, width, dtype, padded
):
    hidden = batch(sequences, length, width, dtype=dtype)
    mask = torch.ones(sequences, length, dtype=torch.bool)
    if padded:
        mask[::2, length // 2 :] = False
    penalty = DebiasedIsotropy(rows=None, seed=3)
    tokens = RealTokens.of(hidden, mask, None, World())
    halves = tokens.halves((3, 0, 0))  # what the first call deals
    rows = hidden[mask].double().numpy()
    first, second = (np.cov(rows[np.asarray(halves) == half].T) for half in (0, 1))
    ratio = np.trace(first) * np.trace(second) / np.vdot(first, second)
    expected = (ratio - 1) / (width - 1)
    value = penalty(hidden, mask).item()
    assert 0 < expected < 1  # so that nothing is clamped
    assert value == pytest.approx(1 - expected, abs=1e-6)
    assert penalty.reading == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("n", "d"), [(300, 10), (40, 96)])
def test_on_independent_rows_the_value_is_one_minus_the_measure(n, d, dtype):
    rows = batch(n, 1, d, dtype=dtype)[:, 0]
    (reading,) = measure(rows.numpy(), measures=["isoscore-debiased"])
    assert 0 < reading.value < 1
    value = DebiasedIsotropy(rows=None)(rows).item()
    assert value == pytest.approx(1 - reading.value, abs=1e-6)


@pytest.mark.parametrize(("n", "d"), [(20, 4), (9, 15)])
def test_on_independent_rows_the_gradient_is_that_of_finite_differences(n, d):
    rows = batch(n, 1, d)[:, 0].requires_grad_()
    penalty = DebiasedIsotropy(rows=None)
    assert penalty(rows).item() > 0.1
    assert gradcheck(lambda x: penalty(x), rows, atol=1e-7)


def test_few_sequences_do_not_lower_it():
    variances = np.arange(1, 49) ** -0.5
    truth = (variances.sum() ** 2 / (variances**2).sum() - 1) / 47
    halves, rows = [], []
    for seed in range(10):
        hidden = batch(24, 40, 48, rho=0.6, power=-0.25, seed=seed)
        halves.append(1 - DebiasedIsotropy(rows=None)(hidden).item())
        rows.append(1 - DebiasedIsotropy(rows=None)(hidden.reshape(-1, 48)).item())
    # ten batches of halves have a standard error of about 0.02
    assert np.mean(halves) == pytest.approx(truth, abs=0.06)
    assert np.mean(rows) < truth - 0.1  # as if tokens were independent: far too low


def test_beyond_isotropy_it_stands_still():
    cloud = torch.randn(8, 64, generator=torch.Generator().manual_seed(0)).double()
    orthogonal = torch.linalg.qr(cloud.T)[0].T.contiguous()
    for hidden in (orthogonal, orthogonal.reshape(4, 2, 64)):
        hidden = hidden.clone().requires_grad_()
        penalty = DebiasedIsotropy()
        value = penalty(hidden)
        value.backward()
        assert value.item() == 0
        assert penalty.reading == 1.0
        assert not hidden.grad.any()


def test_sequences_are_dealt_anew_at_every_call_and_the_same_way_from_one_seed():
    hidden = batch(6, 5, 4)
    penalty, same = DebiasedIsotropy(seed=1), DebiasedIsotropy(seed=1)
    values = [penalty(hidden).item() for _ in range(6)]
    assert len(set(values)) > 1
    assert [same(hidden).item() for _ in range(6)] == values


def test_one_sequence_gives_zero_and_is_warned_of_once(recwarn):
    penalty = DebiasedIsotropy()
    for _ in range(3):
        assert penalty(batch(1, 30, 4)).item() == 0
    (warning,) = recwarn
    assert "this batch has one" in str(warning.message)


def test_documents_packed_into_one_sequence_are_distinguished():
    hidden = batch(6, 5, 4)
    packed = hidden.reshape(1, 30, 4)
    numbers = torch.arange(6).repeat_interleave(5)[None]
    assert DebiasedIsotropy()(packed, documents=numbers) == DebiasedIsotropy()(hidden)


def test_documents_of_several_sequences_stay_together():
    hidden = batch(6, 5, 4)
    joined = hidden.reshape(3, 10, 4)
    found = DebiasedIsotropy()(hidden, documents=[7, 7, 3, 3, 5, 5])
    expected = DebiasedIsotropy()(joined, documents=[7, 3, 5])
    assert found.item() == pytest.approx(expected.item(), abs=1e-12)


@pytest.mark.parametrize(("sequences", "length"), [(2, 3), (7, 1), (2, 1)])
def test_below_eight_rows_it_is_zero(sequences, length):
    assert sequences * length < LEAST
    assert DebiasedIsotropy()(batch(sequences, length, 4)).item() == 0
    assert DebiasedIsotropy()(batch(sequences, length, 4).reshape(-1, 4)).item() == 0


def test_a_half_with_one_row_or_without_spread_gives_zero():
    hidden = batch(2, 8, 4)
    mask = torch.ones(2, 8)
    mask[0, 1:] = 0
    assert DebiasedIsotropy()(hidden, mask).item() == 0
    hidden[0] = 1.5
    assert DebiasedIsotropy()(hidden).item() == 0


def test_a_single_column_has_no_directions():
    rows = torch.arange(20.0)[:, None]
    whole = RowSelection([], [20], torch.arange(20), independent=True)
    assert not debiased_score(rows, whole, World()).defined


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scale", [1e-1, 1e-2, 1e-3, 1e-4])
def test_one_row_far_from_all_others_gives_zero_and_not_noise(scale, seed):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(64, 32, generator=generator) * scale
    rows[0] += 1000.0 * torch.randn(32, generator=generator)
    rows.requires_grad_()
    penalty = DebiasedIsotropy(rows=None)
    value = penalty(rows)
    value.backward()
    assert value.item() == 0 and penalty.reading is None
    assert not rows.grad.any()


def test_a_row_that_is_only_far_is_measured():
    rows = batch(64, 1, 32, dtype=torch.float32)[:, 0]
    rows[0, 0] += 10.0
    (reading,) = measure(rows.numpy(), measures=["isoscore-debiased"])
    value = DebiasedIsotropy(rows=None)(rows).item()
    assert value == pytest.approx(1 - reading.value, abs=1e-4)

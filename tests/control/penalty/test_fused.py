"""The one autograd function: what a score says is what autograd gets."""

import pytest
import torch

from isoscope.control.penalty.penalty import UNDEFINED, Evaluation, ScoreResult
from isoscope.control.penalty.row_selection import RealTokens, RowSelection
from isoscope.control.processes import World


def total(rows, cloud, world):
    """Return the sum of squares as a score."""
    return ScoreResult(float(rows.square().sum()), lambda factor: 2 * factor * rows)


def evaluated(hidden, score, mask=None, world=None):
    tokens = RealTokens.of(hidden, mask, None, World())
    cloud = RowSelection.of(tokens, [hidden], None, (0,))
    evaluation = Evaluation(score, cloud, world or World())
    return evaluation, evaluation.of([hidden])


def test_value_and_slope_arrive():
    hidden = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    evaluation, value = evaluated(hidden, total)
    (3 * value).backward()
    assert value.item() == pytest.approx(hidden.detach().square().sum().item())
    assert evaluation.result.value == value.item()
    torch.testing.assert_close(hidden.grad, 6 * hidden.detach())


def test_the_gradient_makes_up_for_the_average_over_processes():
    hidden = torch.ones(1, 3, 4, requires_grad=True)
    _, value = evaluated(hidden, total, world=World(size=5))
    value.backward()
    assert torch.equal(hidden.grad, torch.full((1, 3, 4), 10.0))


@pytest.mark.parametrize("score", [None, lambda *_: UNDEFINED])
def test_without_a_value_there_is_a_zero_that_can_be_differentiated(score):
    hidden = torch.ones(1, 3, 4, requires_grad=True)
    evaluation, value = evaluated(hidden, score)
    value.backward()
    assert value.item() == 0
    assert not evaluation.result.defined
    assert torch.equal(hidden.grad, torch.zeros(1, 3, 4))


def test_it_cannot_be_differentiated_twice():
    hidden = torch.ones(1, 3, 4, requires_grad=True)
    _, value = evaluated(hidden, total)
    (slope,) = torch.autograd.grad(value.square(), hidden, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()

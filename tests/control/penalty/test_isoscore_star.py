"""IStar: its value, its gradient, and what it shrinks towards."""

import numpy as np
import pytest
import torch

from isoscope.api import measure
from isoscope.control import IStar
from isoscope.control.penalty.isoscore_star import MEMORY, StarScore
from isoscope.control.penalty.row_selection import RowSelection
from isoscope.control.processes import World
from isoscope.errors import ConfigError


def cloud(n, d, dtype=torch.float64, seed=0, shift=3.0):
    generator = torch.Generator().manual_seed(seed)
    scales = torch.arange(1, d + 1, dtype=torch.float64) ** -0.5
    return (torch.randn(n, d, generator=generator, dtype=torch.float64) * scales + shift).to(
        dtype
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("n", "d"), [(400, 24), (30, 96), (2, 5)])
@pytest.mark.parametrize("zeta", [0.0, 0.2, 0.7, 1.0])
def test_the_value_is_one_minus_the_measure(n, d, zeta, dtype):
    rows = cloud(n, d, dtype)
    (reading,) = measure(rows.numpy(), measures=["isoscore-star"], zeta=zeta)
    penalty = IStar(weight=1.0, zeta=zeta, rows=None)
    assert penalty(rows).item() == pytest.approx(1 - reading.value, abs=1e-6)
    assert penalty.reading == pytest.approx(reading.value, abs=1e-6)


def test_without_shrinkage_it_is_isoscore():
    rows = cloud(100, 12)
    (reading,) = measure(rows.numpy(), measures=["isoscore"])
    assert IStar(zeta=0.0)(rows).item() == pytest.approx(1 - reading.value, abs=1e-12)


def test_with_the_identity_it_is_the_measure_as_published():
    rows = cloud(100, 12)
    (reading,) = measure(rows.numpy(), measures=["isoscore-star"], zeta=0.3, as_published=True)
    with pytest.warns(UserWarning, match="depend on the scale"):
        penalty = IStar(zeta=0.3, towards="identity")
    assert penalty(rows).item() == pytest.approx(1 - reading.value, abs=1e-9)
    assert torch.equal(penalty.shrinkage, torch.eye(12))


@pytest.mark.parametrize("zeta", [0.0, 0.2, 1.0])
@pytest.mark.parametrize(("n", "d"), [(300, 32), (40, 64)])
def test_value_and_gradient_are_those_of_isoscore_2_0_1(n, d, zeta):
    published = pytest.importorskip("IsoScore.IsoScore").istar()
    stable = torch.cov(cloud(500, d, seed=1).T)
    theirs, ours = cloud(n, d), cloud(n, d).requires_grad_()
    expected = 1 - published.IsoScore_star(theirs, stable, zeta, is_eval=False)
    expected.backward()
    value = IStar(zeta=zeta, rows=None, towards=stable)(ours)
    value.backward()
    assert value.item() == pytest.approx(expected.item(), abs=1e-6)
    apart = (ours.grad - theirs.grad).norm()
    # Two singular values that coincide, as those that are zero at n < d, have no derivative
    # in the published code, but with zeta > 0 and a full matrix there are none.
    assert apart <= 1e-5 * theirs.grad.norm()


def test_layers_are_one_cloud_or_each_its_own():
    layers = [cloud(40, 8, seed=s).reshape(4, 10, 8) * (s + 1) for s in range(3)]
    union = torch.cat([layer.reshape(-1, 8) for layer in layers])
    assert IStar()(layers).item() == pytest.approx(IStar()(union).item())
    each = [IStar()(layer).item() for layer in layers]
    assert IStar(per_layer=True)(layers).item() == pytest.approx(np.mean(each))
    assert IStar(layers="last")(layers).item() == pytest.approx(each[2])
    assert IStar(layers=[0, -1])(layers).item() == pytest.approx(IStar()(layers[::2]).item())


def test_the_scaled_target_does_not_depend_on_scale():
    rows = cloud(60, 8, torch.float32)
    values = [IStar()(rows * scale).item() for scale in (1e-12, 1.0, 1e12)]
    assert values == pytest.approx([values[1]] * 3, abs=1e-6)


def test_the_running_average_is_of_past_batches():
    batches = [cloud(50, 6, seed=s) for s in range(3)]
    penalty = IStar(towards="running")
    first = penalty(batches[0])
    assert first.item() == pytest.approx(IStar()(batches[0]).item())  # there is no past yet
    torch.testing.assert_close(penalty.shrinkage, torch.cov(batches[0].T))
    second = penalty(batches[1])
    expected = IStar(towards=torch.cov(batches[0].T))(batches[1])
    assert second.item() == pytest.approx(expected.item())
    penalty(batches[2])
    mean = torch.stack([torch.cov(each.T) for each in batches]).mean(dim=0)
    torch.testing.assert_close(penalty.shrinkage, mean)
    assert "shrinkage" in penalty.state_dict()


def test_the_running_average_forgets_what_is_long_ago():
    penalty = IStar(towards="running")
    penalty(cloud(50, 3) * 1000)
    for _ in range(5 * MEMORY):
        penalty(cloud(50, 3))
    ratio = penalty.shrinkage.trace() / torch.cov(cloud(50, 3).T).trace()
    # averaged in full at first: 1e6 / 100, then less by exp(-1) every hundred batches
    assert 1 < ratio < 1e6 / MEMORY * np.exp(-3.5)


def test_batches_that_do_not_train_leave_the_average_alone():
    penalty = IStar(towards="running")
    penalty(cloud(50, 3))
    before = penalty.shrinkage.clone()
    with torch.no_grad():
        penalty(cloud(50, 3, seed=1))
    penalty.eval()(cloud(50, 3, seed=1))
    penalty.train()(torch.ones(5, 3))  # undefined: nothing to take in
    assert torch.equal(penalty.shrinkage, before)
    assert penalty.averaged == 1


def test_each_layer_has_a_running_average_of_its_own():
    layers = [cloud(50, 3, seed=s) for s in range(2)]
    penalty = IStar(towards="running", per_layer=True)
    penalty(layers)
    expected = torch.stack([torch.cov(layer.T) for layer in layers])
    torch.testing.assert_close(penalty.shrinkage, expected)
    each = [IStar(towards=torch.cov(x.T))(x).item() for x in layers]
    assert penalty(layers).item() == pytest.approx(np.mean(each))


def test_half_precision_modules_keep_the_matrix_in_full():
    penalty = IStar(towards=torch.eye(4) / 3)
    assert penalty.half().shrinkage.dtype == torch.float32
    assert torch.equal(penalty.bfloat16().shrinkage, torch.eye(4) / 3)
    assert penalty.double().shrinkage.dtype == torch.float64


def test_a_saved_matrix_is_loaded_whatever_was_there_before():
    saved = IStar(towards=torch.eye(4) / 3).state_dict()
    for other in (IStar(), IStar(towards=torch.eye(7))):
        other.load_state_dict(saved)
        assert torch.equal(other.shrinkage, torch.eye(4) / 3)
    assert "shrinkage" not in IStar().state_dict()


def test_a_matrix_of_zeros_alone_gives_zero():
    penalty = IStar(zeta=1.0, towards=torch.zeros(3, 3))
    assert penalty(cloud(9, 3)).item() == 0
    assert penalty.reading is None


@pytest.mark.parametrize("zeta", [-0.1, 1.1, float("nan")])
def test_zeta_is_between_0_and_1(zeta):
    with pytest.raises(ConfigError, match="expected zeta between 0 and 1, got"):
        IStar(zeta=zeta)


@pytest.mark.parametrize(
    ("towards", "match"),
    [
        ("stream", "expected a matrix or one of scaled, identity, running, streamed"),
        (torch.ones(3, 4), "expected a covariance"),
        (torch.tensor([[1.0, 2.0], [0.0, 1.0]]), "not symmetric and finite"),
        (torch.full((2, 2), float("nan")), "not symmetric and finite"),
    ],
)
def test_a_target_that_is_none_is_refused(towards, match):
    with pytest.raises(ConfigError, match=match):
        IStar(towards=towards)


def test_a_matrix_of_another_width_is_refused():
    with pytest.raises(ConfigError, match=r"shape \(8, 8\), got \(3, 3\)"):
        IStar(towards=torch.eye(3))(cloud(9, 8))


def test_it_says_what_it_is():
    assert "zeta=0.2, towards='scaled'" in repr(IStar())


def test_the_score_keeps_the_covariance_only_where_requested():
    rows = cloud(20, 3)
    whole = RowSelection([], [20], torch.arange(20), independent=True)
    for keep in (False, True):
        score = StarScore(0.2, keep=keep)
        assert score(rows, whole, World()).defined
        assert (score.covariance is not None) == keep


def test_a_state_from_before_the_first_batch_is_loaded():
    penalty = IStar(towards="running")
    early = penalty.state_dict()
    penalty(cloud(9, 3))
    penalty.load_state_dict(early)
    assert penalty.shrinkage is None and penalty.call == penalty.averaged == 0


@pytest.mark.parametrize("matrix", [torch.full((3, 3), float("nan")), torch.ones(3, 4)])
def test_a_saved_matrix_that_is_none_is_refused(matrix):
    state = {"shrinkage": matrix, "_extra_state": torch.tensor([1, 1])}
    with pytest.raises(ConfigError, match="expected a covariance"):
        IStar().load_state_dict(state)


def test_the_state_of_another_penalty_is_refused():
    with pytest.raises(ConfigError, match="got that of another penalty") as caught:
        IStar().load_state_dict({"_extra_state": torch.tensor([1])})
    assert caught.value.slug == "checkpoint-state"


def test_a_matrix_to_be_streamed_has_to_be_there():
    with pytest.raises(ConfigError, match=r"streamed, got none"):
        IStar(towards="streamed")(cloud(9, 3))
    with pytest.raises(ConfigError, match="expected 2 tokens or more"):
        IStar(towards="streamed", tokens=1)

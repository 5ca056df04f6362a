"""What every penalty promises, whichever measure it is the twin of."""

import warnings

import pytest
import torch
from torch import nn
from torch.autograd import gradcheck
from torch.utils.checkpoint import checkpoint

from isoscope.control import CosReg, DebiasedIsotropy, IStar, MeanCosine


def matrix(width):
    rows = torch.randn(50, width, generator=torch.Generator().manual_seed(5)).double()
    return torch.cov(rows.T)


# Each takes a width, and options that all penalties know.
MAKERS = {
    "istar": lambda d, **how: IStar(**how),
    "istar-plain": lambda d, **how: IStar(zeta=0.0, **how),
    "istar-matrix": lambda d, **how: IStar(towards=matrix(d), **how),
    "istar-running": lambda d, **how: IStar(towards="running", **how),
    "istar-layers": lambda d, **how: IStar(per_layer=True, **how),
    "debiased": lambda d, **how: DebiasedIsotropy(**how),
    "debiased-layers": lambda d, **how: DebiasedIsotropy(per_layer=True, **how),
    "cosreg": lambda d, **how: CosReg(**how),
    "cosreg-published": lambda d, **how: CosReg(as_published=True, **how),
    "mean-cosine": lambda d, **how: MeanCosine(**how),
    "mean-cosine-across": lambda d, **how: MeanCosine(across=True, **how),
}
SPECTRAL = [name for name in MAKERS if name.startswith(("istar", "debiased"))]
every_penalty = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
every_spectral = pytest.mark.parametrize("make", [MAKERS[n] for n in SPECTRAL], ids=SPECTRAL)


def batch(sequences=5, length=7, width=6, dtype=torch.float64, seed=0):
    """Return two layers and a mask with padding."""
    generator = torch.Generator().manual_seed(seed)
    scales = torch.arange(1, width + 1, dtype=torch.float64) ** -1.0
    shape = (sequences, length, width)
    layers = [
        (torch.randn(shape, generator=generator, dtype=torch.float64) * scales + 0.5).to(dtype)
        for _ in range(2)
    ]
    mask = torch.ones(sequences, length, dtype=torch.int64)
    mask[1, 4:] = 0
    mask[3, 1:] = 0
    return [layer.requires_grad_() for layer in layers], mask


def run(penalty, layers, mask):
    """Return the value of a penalty and the gradients of the layers."""
    layers = [layer.detach().clone().requires_grad_() for layer in layers]
    value = penalty(layers, mask)
    value.backward()
    zero = torch.zeros_like(layers[0])
    return value.detach(), [zero if x.grad is None else x.grad for x in layers]


@every_penalty
@pytest.mark.parametrize(
    ("sequences", "length", "width"), [(4, 5, 3), (4, 2, 9)], ids=["long", "wide"]
)
@pytest.mark.parametrize("rows", [None, 11])
def test_the_gradient_is_that_of_finite_differences(make, sequences, length, width, rows):
    layers, mask = batch(sequences, length, width)
    penalty = make(width, rows=rows)
    penalty(layers, mask)  # so that a running average has something to go by
    penalty.eval()
    # 1e-7: what central differences with steps of 1e-6 can tell
    assert gradcheck(lambda *x: penalty(list(x), mask), layers, atol=1e-7)


@every_penalty
@pytest.mark.parametrize("rows", [None, 20])
def test_padding_changes_nothing(make, rows):
    layers, mask = batch()
    value, gradients = run(make(6, rows=rows), layers, mask)
    more = torch.zeros(7, 11, dtype=torch.int64)  # longer, and two sequences of padding only
    more[:5, :7] = mask
    padded = []
    for layer in layers:
        wide = torch.full((7, 11, 6), float("nan"), dtype=layer.dtype)
        wide[:5, :7] = torch.where(mask[..., None] == 1, layer.detach(), torch.inf)
        padded.append(wide)
    found, spread = run(make(6, rows=rows), padded, more)
    assert found == value
    for before, after in zip(gradients, spread, strict=True):
        torch.testing.assert_close(after[:5, :7][mask == 1], before[mask == 1], rtol=0, atol=0)
        assert not after[more == 0].any()


@every_penalty
def test_the_kind_of_mask_does_not_matter(make):
    layers, mask = batch()
    value, _ = run(make(6), layers, mask)
    for same in (mask.bool(), mask.float(), mask.numpy(), mask.tolist()):
        assert run(make(6), layers, same)[0] == value


@every_penalty
@pytest.mark.parametrize("case", ["one", "none", "zeros", "overflow", "nothing"])
def test_it_is_zero_and_never_nan_where_it_is_undefined(make, case):
    layers, mask = batch(dtype=torch.float16)
    layers = [layer.detach() for layer in layers]
    if case in {"one", "none"}:
        mask = torch.zeros_like(mask)
        mask[0, 0] = case == "one"
    elif case == "zeros":
        layers = [torch.zeros_like(layer) for layer in layers]
    elif case == "overflow":
        layers = [layer * 60000 * 60000 for layer in layers]
    else:
        layers, mask = [layer[:0] for layer in layers], mask[:0]
    penalty = make(6)
    value, gradients = run(penalty, layers, mask)
    assert value == 0
    assert penalty.reading is None
    assert not any(gradient.any() for gradient in gradients)


@every_penalty
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_identical_rows_give_finite_values_and_no_gradient(make, dtype):
    row = torch.randn(40, generator=torch.Generator().manual_seed(1)) * 100
    layers = [row.expand(4, 9, 40).to(dtype)] * 2
    value, gradients = run(make(40), layers, torch.ones(4, 9))
    # cosines of identical rows are 1 (n - 1 over n as published), spectra have no value
    assert 0 <= value <= 1.0001
    for gradient in gradients:
        assert gradient.isfinite().all()
        assert gradient.abs().max() < 1e-7


@every_penalty
def test_huge_numbers_that_half_precision_still_holds_are_no_obstacle(make):
    layers, mask = batch(dtype=torch.float64)
    penalty, other = make(6), make(6)
    if isinstance(penalty, IStar) and penalty.shrinkage is not None:
        other.shrinkage = penalty.shrinkage * 2e4**2
    value, _ = run(penalty, layers, mask)
    half = [(layer.detach() * 2e4).half() for layer in layers]
    found, gradients = run(other, half, mask)
    assert found.item() == pytest.approx(value.item(), abs=2e-3)  # the rounding of float16
    assert all(gradient.isfinite().all() for gradient in gradients)


@every_penalty
def test_bfloat16_is_summed_up_in_float32(make):
    layers, mask = batch(dtype=torch.bfloat16)
    value, gradients = run(make(6), layers, mask)
    wide, slopes = run(make(6), [layer.detach().float() for layer in layers], mask)
    assert value.dtype == torch.float32
    assert value == wide
    for narrow, exact in zip(gradients, slopes, strict=True):
        assert narrow.dtype == torch.bfloat16
        assert torch.equal(narrow, exact.bfloat16())


@every_penalty
def test_autocast_does_not_touch_the_sums(make):
    layers, mask = batch(dtype=torch.float32, width=40)
    value, gradients = run(make(40), layers, mask)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, spread = run(make(40), layers, mask)
    assert found == value
    for before, after in zip(gradients, spread, strict=True):
        assert torch.equal(before, after)


@every_penalty
def test_a_step_downhill_lowers_what_it_measures(make):
    layers, mask = batch(sequences=12, width=6)
    penalty = make(6, rows=None).eval()
    value, gradients = run(penalty, layers, mask)
    size = sum(g.square().sum() for g in gradients)
    assert size > 0
    moved = [x.detach() - 1e-3 / size * g for x, g in zip(layers, gradients, strict=True)]
    assert run(penalty, moved, mask)[0] < value


@every_penalty
def test_a_negative_weight_turns_it_round(make):
    layers, mask = batch()
    value, gradients = run(make(6, weight=1.0), layers, mask)
    found, turned = run(make(6, weight=-2.5), layers, mask)
    assert found == pytest.approx(-2.5 * value)
    for before, after in zip(gradients, turned, strict=True):
        torch.testing.assert_close(after, -2.5 * before)


@every_penalty
def test_backward_can_be_run_twice(make):
    (layer, _), mask = batch()
    value = make(6)([layer, layer], mask)
    value.backward(retain_graph=True)
    first = layer.grad.clone()
    value.backward()
    torch.testing.assert_close(layer.grad, 2 * first)


@every_penalty
def test_a_saved_state_continues_as_if_nothing_had_happened(make):
    layers, mask = batch(dtype=torch.float32)
    penalty = make(6, rows=20, warmup=10)
    for _ in range(3):
        run(penalty, layers, mask)
    other = make(6, rows=20, warmup=10)
    other.load_state_dict(penalty.state_dict())
    for _ in range(2):
        assert run(other, layers, mask)[0] == run(penalty, layers, mask)[0]


@every_penalty
def test_inside_a_checkpoint_the_same_rows_are_seen_again(make):
    layers, mask = batch()
    plain, penalty = make(6, rows=20), make(6, rows=20)
    runs = []

    def bent(*given):  # tanh keeps its output, so that there is something to compute again
        runs.append(len(runs))
        return (penalty if use else plain)([torch.tanh(each) for each in given], mask)

    use = False
    given = [layer.detach().clone().requires_grad_() for layer in layers]
    value = bent(*given)
    value.backward()
    gradients = [torch.zeros_like(x) if x.grad is None else x.grad for x in given]
    use = True
    given = [layer.detach().clone().requires_grad_() for layer in layers]
    found = checkpoint(bent, *given, use_reentrant=False)
    found.backward()
    assert len(runs) == 3
    assert found == value
    assert penalty.call == 1
    for layer, expected in zip(given, gradients, strict=True):
        seen = torch.zeros_like(layer) if layer.grad is None else layer.grad
        torch.testing.assert_close(seen, expected)


@every_penalty
def test_a_compiled_step_gives_the_same(make):
    layers, mask = batch(dtype=torch.float32)
    torch.manual_seed(0)
    linear = nn.Linear(6, 6)

    def step(penalty):
        mapped = [torch.tanh(linear(layer.detach())) for layer in layers]
        return penalty(mapped, mask) * 2 + mapped[0].square().mean()

    torch._dynamo.reset()
    linear.zero_grad()
    plain = step(make(6, rows=20))
    plain.backward()
    expected = linear.weight.grad.clone()
    linear.zero_grad()
    found = torch.compile(step, backend="aot_eager")(make(6, rows=20))
    found.backward()
    torch.testing.assert_close(found, plain)
    torch.testing.assert_close(linear.weight.grad, expected)


@every_penalty
def test_weight_zero_costs_nothing_and_is_zero(make):
    layers, mask = batch()
    penalty = make(6, weight=0.0)
    value, gradients = run(penalty, layers, mask)
    assert value == 0
    assert penalty.reading is None
    assert not any(gradient.any() for gradient in gradients)


@every_penalty
def test_layers_without_gradient_get_none(make):
    (first, second), mask = batch()
    value = make(6)([first.detach(), second], mask)
    value.backward()
    assert second.grad.any()
    with torch.no_grad():
        assert not make(6)([first, second], mask).requires_grad


@every_spectral
def test_moving_all_rows_changes_nothing(make):
    layers, mask = batch()
    value, _ = run(make(6), layers, mask)
    moved, _ = run(make(6), [layer.detach() + 1000.0 for layer in layers], mask)
    assert moved.item() == pytest.approx(value.item(), abs=1e-9)


def test_all_of_this_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for make in MAKERS.values():
            run(make(6), *batch())

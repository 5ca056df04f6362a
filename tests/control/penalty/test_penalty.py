"""What all penalties share, and how they get on with a real model in training."""

from pathlib import Path

import pytest
import torch
from transformers import AutoModel

from isoscope.control import DebiasedIsotropy, IStar, MeanCosine, Penalty, cosine
from isoscope.control.listening import recomputing
from isoscope.errors import ConfigError, PenaltyError

IDS = torch.arange(40).reshape(5, 8) % 30 + 4
MASK = torch.ones(5, 8, dtype=torch.int64)
MASK[2, 5:] = 0
BATCH = {"input_ids": IDS, "attention_mask": MASK}


@pytest.fixture
def model(tiny):
    still = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return AutoModel.from_pretrained(tiny, **still).train()


def gradients(model, penalty, **how):
    """Return the penalty of a batch and the gradients of all parameters that have one."""
    model.zero_grad()
    output = model(**BATCH, output_hidden_states=True, **how)
    value = penalty(output, MASK)
    value.backward()
    named = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    return value.detach(), named


def rows(n=50, d=4):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(0)) + 1


def test_a_penalty_is_a_module_that_says_what_it_is():
    shown = "MeanCosine(weight=2, sites='resid', layers='all', rows=2048, per_layer=True)"
    assert repr(MeanCosine(2.0)) == shown
    scheduled = repr(IStar(-1.0, sites=["resid.3"], warmup=9, schedule=cosine(50)))
    assert scheduled.startswith("IStar(weight=-1, warmup=9, schedule=cosine(steps=50), sites=(")
    assert issubclass(IStar, Penalty)
    assert not list(IStar().parameters())


def test_a_budget_draws_other_rows_at_every_call_and_the_same_from_one_seed():
    first, second = IStar(rows=10, seed=5), IStar(rows=10, seed=5)
    values = [first(rows()).item() for _ in range(4)]
    assert len(set(values)) == 4
    assert [second(rows()).item() for _ in range(4)] == values
    assert IStar(rows=10, seed=6)(rows()).item() != values[0]
    assert IStar(rows=50)(rows()) == IStar(rows=None)(rows())


def test_only_calls_that_train_are_counted():
    penalty = IStar(rows=10, warmup=100)
    penalty(rows())
    assert (penalty.call, penalty.weight) == (1, 0.02)
    with torch.no_grad():
        penalty(rows())
    penalty.eval()
    assert penalty(rows()) == penalty(rows())
    assert penalty.call == 1
    assert not recomputing()


def test_the_weight_follows_its_schedule():
    penalty = IStar(weight=4.0, warmup=2, accumulate=2, schedule=lambda step: 1.0 - step / 4)
    plain = IStar()(rows()).item()
    found = [penalty(rows()).item() / plain for _ in range(6)]
    assert found == pytest.approx([2.0, 2.0, 3.0, 3.0, 2.0, 2.0])


def test_accumulated_batches_add_up(model):
    halves = [slice(0, 3), slice(3, 5)]
    penalty = IStar(rows=None)
    model.zero_grad()
    for half in halves:
        output = model(
            input_ids=IDS[half], attention_mask=MASK[half], output_hidden_states=True
        )
        (penalty(output, MASK[half]) / 2).backward()
    found = model.embeddings.word_embeddings.weight.grad.clone()
    model.zero_grad()
    outputs = [
        model(input_ids=IDS[h], attention_mask=MASK[h], output_hidden_states=True)
        for h in halves
    ]
    total = sum(IStar(rows=None)(o, MASK[h]) for o, h in zip(outputs, halves, strict=True))
    (total / 2).backward()
    torch.testing.assert_close(model.embeddings.word_embeddings.weight.grad, found)


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("make", [IStar, DebiasedIsotropy, MeanCosine])
def test_gradient_checkpointing_of_the_model_changes_nothing(model, make, reentrant):
    value, expected = gradients(model, make(rows=60))
    model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    if reentrant:
        model.enable_input_require_grads()
    penalty = make(rows=60)
    found, after = gradients(model, penalty)
    assert penalty.call == 1
    torch.testing.assert_close(found, value)
    assert after.keys() == expected.keys()
    for name, gradient in expected.items():
        torch.testing.assert_close(after[name], gradient, msg=name)


@pytest.mark.parametrize("make", [IStar, DebiasedIsotropy, MeanCosine])
def test_adapters_are_trained_and_nothing_else(model, make):
    peft = pytest.importorskip("peft")
    torch.manual_seed(0)
    config = peft.LoraConfig(r=2, target_modules=["query", "value"], init_lora_weights=False)
    adapted = peft.get_peft_model(model, config)
    adapted.train()
    value, found = gradients(adapted, make(rows=60))
    assert value > 0
    assert found
    assert all("lora_" in name for name in found)
    assert any(gradient.any() for gradient in found.values())
    assert all(gradient.isfinite().all() for gradient in found.values())


@pytest.mark.parametrize("make", [IStar, DebiasedIsotropy, MeanCosine])
def test_a_model_under_autocast_trains(model, make):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value, found = gradients(model, make())
    exact, _ = gradients(model, make())
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(exact.item(), abs=0.02)  # of bfloat16 layers
    assert all(gradient.isfinite().all() for gradient in found.values())


@pytest.mark.parametrize("make", [IStar, DebiasedIsotropy, MeanCosine])
def test_a_model_in_bfloat16_trains(model, make):
    value, found = gradients(model.bfloat16(), make())
    assert value.dtype == torch.float32
    assert value > 0
    assert all(gradient.isfinite().all() for gradient in found.values())


def test_training_on_it_moves_what_it_is_named_after(model):
    readings = []
    for weight in (1.0, -1.0):
        state = {name: value.clone() for name, value in model.state_dict().items()}
        penalty = IStar(weight=weight, rows=None)
        optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
        for _ in range(15):
            optimiser.zero_grad()
            penalty(model(**BATCH, output_hidden_states=True), MASK).backward()
            optimiser.step()
            readings.append(penalty.reading)
        model.load_state_dict(state)
    up, down = readings[:15], readings[15:]
    assert up[-1] > up[0] + 0.05
    assert down[-1] < down[0] - 0.05


def test_the_layers_of_a_union_have_one_width():
    layers = [torch.ones(3, 4, 5), torch.ones(3, 4, 6)]
    with pytest.raises(ConfigError, match=r"expected layers of one width, got widths \[5, 6\]"):
        IStar()(layers)
    assert MeanCosine()(layers).item() == pytest.approx(1.0)
    with pytest.raises(ConfigError, match="expected layers of one width"):
        IStar(per_layer=True, towards="running")(layers)


@pytest.mark.parametrize("budget", [1, 0, -5, 2.5, "all"])
def test_a_budget_is_a_number_of_rows(budget):
    with pytest.raises(ConfigError, match="expected a budget of 2 rows or more"):
        IStar(rows=budget)


def test_a_mask_may_be_excluded_where_nothing_is_padded():
    hidden = rows(24).reshape(4, 6, 4)
    assert IStar()(hidden) == IStar()(hidden, torch.ones(4, 6))


def test_the_first_example_of_the_page_runs(capsys):
    page = (Path(__file__).parents[3] / "docs" / "control.md").read_text()
    example = page.partition("```python\n")[2].partition("```")[0]
    exec(compile(example, "control.md", "exec"), {})
    assert capsys.readouterr().out.endswith("after 20 steps\n")


@pytest.mark.parametrize("scale", [1e-12, 1e-15, 1e-18, 1e-20, 1e-22, 1e-30, 1e-40, 1e18, 1e30])
@pytest.mark.parametrize(
    "made",
    [
        lambda: IStar(8.0),
        lambda: IStar(8.0, zeta=0.0),
        lambda: IStar(8.0, towards="running"),
        lambda: IStar(8.0, towards=torch.eye(8) * 1e-38),
        lambda: DebiasedIsotropy(8.0),
        lambda: MeanCosine(8.0),
    ],
)
def test_hidden_states_too_small_or_too_large_have_finite_gradients(made, scale):
    penalty, generator = made(), torch.manual_seed(1)
    for _ in range(2):  # the running average is there the second time
        hidden = (torch.randn(8, 10, 8, generator=generator) * scale).requires_grad_()
        value = penalty(hidden)
        value.backward()
        assert value.isfinite() and hidden.grad.isfinite().all()


def test_what_makes_no_sense_is_reported():
    hidden = torch.randn(2, 3, 4, generator=torch.manual_seed(0))
    with pytest.raises(ConfigError, match="0 or more as seed, got -1") as caught:
        IStar(seed=-1)
    assert caught.value.slug == "penalty-seed"
    with pytest.raises(PenaltyError, match="expected layers, got an empty list"):
        IStar(layers=[])(hidden)
    with pytest.raises(PenaltyError, match="got negative numbers or NaN"):
        IStar()(hidden, torch.full((2, 3), float("nan")))

"""Tangents of a training run: numbers by hand, training untouched, resuming, and bad input."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from isoscope.control import Tangents, Watch
from isoscope.control.processes import World
from isoscope.errors import ConfigError, IsoscopeError, UnknownNameError

ENERGY, RATIO = "anisotropy/tangent-energy", "anisotropy/tangent-energy-ratio"
MAP = "encoder.layer.1.output.dense"


@pytest.fixture
def model(tiny):
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_pretrained(tiny).train()
    for module in model.modules():  # so that a pass can be repeated
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return model


@pytest.fixture
def batches(tiny, texts):
    """Return batches of twelve texts, padded."""
    tokenizer = AutoTokenizer.from_pretrained(tiny)

    def made(start):
        batch = dict(tokenizer(texts[start : start + 12], padding=True, return_tensors="pt"))
        batch.pop("token_type_ids", None)
        return {**batch, "labels": torch.arange(12) % 2}

    return [made(0), made(12), made(24)]


def train(model, batches, watch, rate=1e-3):
    """Train a step per batch, with what is watched."""
    optimiser = torch.optim.SGD(model.parameters(), lr=rate)
    for step, batch in enumerate(batches, start=1):
        watch.begin(model, step)
        optimiser.zero_grad()
        loss = model(**batch).loss
        loss.backward()
        if step < len(batches):
            optimiser.step()
        watch.end(model, step, loss.detach())


def watching(**options):
    return Watch(every=1, batch=False, rules=(), tangents=Tangents(**options))


def by_hand(model, batch):
    """Return activations and gradients after block 1, real positions only, of one step."""
    kept = []
    hook = model.bert.encoder.layer[1].register_forward_hook(
        lambda _m, _i, out: kept.append(out[0] if isinstance(out, tuple) else out)
    )
    loss = model(**batch).loss
    hook.remove()
    (gradient,) = torch.autograd.grad(loss, kept)
    real = batch["attention_mask"].bool()
    return kept[0].detach()[real].double().numpy(), gradient[real].double().numpy()


def top_directions(rows, rank):
    _, _, axes = np.linalg.svd(rows - rows.mean(0), full_matrices=False)
    return axes[:rank].T


def test_gradients_of_a_step_are_held_against_the_activations_of_the_one_before(model, batches):
    first, _ = by_hand(model, batches[0])
    watch = watching(rank=3)
    train(model, batches[:1], watch)
    assert not any(name.startswith("anisotropy") for name in watch.history)
    _, gradients = by_hand(model, batches[1])
    watch.begin(model, 2)
    model(**batches[1]).loss.backward()
    watch.end(model, 2)
    q = top_directions(first, 3)
    share = np.square(gradients @ q).sum() / np.square(gradients).sum()
    found = {name: series[-1] for name, series in watch.history.items()}
    width = gradients.shape[1]
    assert found[f"{ENERGY}/grad.1"] == (2, pytest.approx(share, rel=1e-4))
    assert found[f"{RATIO}-random/grad.1"][1] == pytest.approx(share * width / 3, rel=1e-4)
    outside = (1 - share) * 3 / (width - 3)
    assert found[f"{RATIO}-complement/grad.1"][1] == pytest.approx(share / outside, rel=1e-4)
    assert 0 < found["anisotropy/tangent-match/grad.1"][1] <= 1
    assert {name.rpartition("/")[2] for name in found if name.startswith(ENERGY)} == {
        "grad.0", "grad.1", "grad.2",
    }  # fmt: skip


def test_weight_gradients_are_those_of_the_parameter_and_have_a_shuffled_control(
    model, batches
):
    inputs = []
    module = model.bert.get_submodule(MAP)
    hook = module.register_forward_pre_hook(lambda _m, given: inputs.append(given[0].detach()))
    model(**batches[0])
    hook.remove()
    rows = inputs[0][batches[0]["attention_mask"].bool()].double().numpy()
    watch = watching(sites=[f"gradw.{MAP}"], rank=4)
    train(model, batches[:2], watch, rate=0.0)
    gradient = module.weight.grad.double().numpy()  # (out, d)
    q = top_directions(rows, 4)
    share = np.square(gradient @ q).sum() / np.square(gradient).sum()
    found = {name: series[-1][1] for name, series in watch.history.items()}
    assert found[f"{ENERGY}/gradw.{MAP}"] == pytest.approx(share, rel=1e-4)
    shuffled = found[f"{ENERGY}-shuffled/gradw.{MAP}"]
    assert found[f"{RATIO}-shuffled/gradw.{MAP}"] == pytest.approx(share / shuffled, rel=1e-4)


def test_training_is_the_same_bit_for_bit_and_no_hook_stays(tiny, batches):
    weights = []
    for watched in (False, True):
        torch.manual_seed(0)
        model = AutoModelForSequenceClassification.from_pretrained(tiny).train()
        torch.manual_seed(1)
        tangents = Tangents(["grad", f"gradw.{MAP}"]) if watched else None
        watch = Watch(every=1, rules=(), tangents=tangents)
        train(model, batches, watch)
        assert not any(
            m._forward_hooks or m._forward_pre_hooks or "forward" in vars(m)
            for m in model.modules()
        )
        weights.append([p.detach().clone() for p in model.parameters()])
    assert all(torch.equal(one, other) for one, other in zip(*weights, strict=True))


def test_only_the_first_micro_batch_of_a_step_is_read(model, batches):
    alone, accumulated = watching(rank=2), watching(rank=2)
    for watch, number in ((alone, 1), (accumulated, 3)):
        for step in (1, 2):
            watch.begin(model, step)
            for batch in batches[:number]:
                model(**batch).loss.backward()
            watch.end(model, step)
    assert accumulated.history == alone.history


def test_proxies_of_the_first_reading_may_stay(model, batches):
    watch = watching(rank=2, follow=False)
    train(model, batches[:1], watch)
    first = {site: basis.copy() for site, basis in watch.tangents.proxies.items()}
    train(model, batches[1:], watch)
    assert all(np.array_equal(first[site], q) for site, q in watch.tangents.proxies.items())
    assert not any("tangent-match" in name for name in watch.history)


def test_a_state_has_history_and_proxies_and_goes_on(model, batches):
    watch = watching(rank=2)
    train(model, batches[:2], watch)
    again = watching(rank=2)
    again.load_state_dict(watch.state_dict())
    assert again.history == watch.history
    for one in (watch, again):
        one.begin(model, 3)
        model.zero_grad()
        model(**batches[2]).loss.backward()
        one.end(model, 3)
    assert again.history == watch.history
    assert len(again.history[f"{ENERGY}/grad.0"]) == 2


def test_several_processes_read_one_cloud_and_fit_one_proxy(model, batches):
    """Two batches in two processes are what both are in one."""

    class Pair(World):
        other = None

        def gather_objects(self, value):
            return [value, self.other]

    parts = [Tangents(rank=2) for _ in range(2)]
    for each, batch in zip(parts, batches, strict=False):
        with each.listening(model, World()):
            model(**batch)
    rows = np.concatenate([by_hand(model, batch)[0] for batch in batches[:2]])
    (state, activations, lost) = parts[1]._step.finish()
    pair = Pair()
    object.__setattr__(pair, "other", (state.to_state(), activations, lost))
    parts[0].read(pair)
    found, expected = parts[0].proxies["grad.1"], top_directions(rows, 2)
    assert np.square(found.T @ expected).sum() == pytest.approx(2, rel=1e-5)


def test_anisotropy_without_the_proxy_on_request(model, batches):
    watch = watching(rank=2, measures=["tangent-anisotropy"])
    train(model, batches[:2], watch)
    names = {name for name in watch.history if name.endswith("/grad.2")}
    assert "anisotropy/tangent-anisotropy/grad.2" in names
    assert "anisotropy/tangent-anisotropy-random/grad.2" in names


# --- bad input ----------------------------------------------------------------------------
def test_a_loss_that_is_not_finite_names_the_step_and_training_goes_on(model, batches):
    logged = []
    watch = watching(rank=2)
    watch.log = lambda numbers, step: logged.append((step, numbers))
    train(model, batches[:2], watch)
    watch.begin(model, 3)
    (model(**batches[2]).loss * float("nan")).backward()
    with pytest.warns(UserWarning, match=r"grad\.0.* cannot be watched at step 3.*NaN"):
        watch.end(model, 3)
    step, numbers = logged[-1]
    assert step == 3 and numbers["anisotropy/lost/grad.0"] == 1.0
    assert not any(name.startswith(ENERGY) for name in numbers)
    assert [step for step, _ in watch.history[f"{ENERGY}/grad.0"]] == [2]


def test_a_model_without_trained_weights_is_refused_when_it_is_placed(model):
    model.requires_grad_(False)
    with pytest.raises(ConfigError, match="weights that are trained") as caught:
        watching().place(model)
    assert caught.value.slug == "tangent-frozen"


def test_sites_before_the_first_trained_weight_are_named_and_the_others_read(model, batches):
    for part in (model.bert.embeddings, model.bert.encoder.layer[0]):
        part.requires_grad_(False)
    watch = watching(rank=2)
    with pytest.warns(UserWarning, match=r"grad\.0 cannot be watched at step 1.*trained"):
        train(model, batches[:2], watch)
    assert f"{ENERGY}/grad.1" in watch.history
    assert f"{ENERGY}/grad.0" not in watch.history
    only = watching(sites=["grad.0"])
    with pytest.raises(ConfigError, match=r"got frozen ones: grad\.0"):
        train(model, batches[:1], only)


def test_a_frozen_linear_map_is_refused_when_it_is_placed(model):
    model.bert.get_submodule(MAP).requires_grad_(False)
    with pytest.raises(IsoscopeError, match="got frozen ones") as caught:
        watching(sites=[f"gradw.{MAP}"]).place(model)
    assert caught.value.slug == "tangent-frozen"


def test_a_site_that_no_gradient_comes_back_to_is_named(model, batches):
    watch = watching(rank=2)
    train(model, batches[:2], watch)
    watch.begin(model, 3)
    model(**batches[2])  # no backward pass: the step was skipped
    with pytest.warns(UserWarning, match="at step 3: no gradient has come back"):
        watch.end(model, 3)


def test_a_rank_beyond_width_or_rows_is_refused(model, batches):
    with pytest.raises(ConfigError, match="expected a rank of at most") as caught:
        watching(rank=1000).place(model)
    assert caught.value.slug == "tangent-rank"
    one = {
        name: each[:1, :4] if each.ndim == 2 else each[:1] for name, each in batches[0].items()
    }
    with pytest.raises(ConfigError, match="below the number of rows"):
        train(model, [one], watching(rank=6))


@pytest.mark.parametrize(
    ("options", "kind", "problem"),
    [
        ({"rank": 0}, ConfigError, "a rank of at least 1"),
        ({"explained": 1.5}, ConfigError, "a share of variance of at most 1"),
        ({"measures": ["isoscore"]}, UnknownNameError, "no measure of gradients is called"),
        ({"sites": ["grad.9"]}, UnknownNameError, "no site is called 'grad.9'"),
    ],
)
def test_settings_that_cannot_be_are_refused(model, options, kind, problem):
    with pytest.raises(kind, match=problem):
        watching(**options).place(model)

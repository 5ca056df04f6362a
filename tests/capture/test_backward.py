"""Gradients heard in passing equal a plain backward pass that stores every one of them."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy, normalize

from isoscope.accumulate import Concepts, Gradients, ShuffledGradients
from isoscope.capture.backward import Backward, Ears, gradient_sites
from isoscope.capture.feed import feed_for, sample_inputs
from isoscope.capture.gradient_sums import GradientSums
from isoscope.capture.listener import document_keys
from isoscope.capture.objective import (
    LabelReader,
    check_trained,
    fitting_losses,
    open_objective,
    shuffle,
)
from isoscope.capture.tap import first_tensor
from isoscope.errors import ConfigError, IsoscopeError, SourceError
from isoscope.study.model import load_model
from isoscope.types import Document

BLOCKS = {"gpt2": "h", "bert": "encoder.layer"}
SIZE = 5  # documents of a micro-batch
PRECISION = {torch.float64: 1e-8, torch.float32: 1e-5}


class Passes:
    """A model, its loss, and micro-batches of texts."""

    def __init__(self, folder, texts, loss=None, dtype=torch.float64, labels=None):
        self.subject = load_model(folder)
        self.loaded = self.subject.loaded
        self.loaded.model.to(dtype)
        self.feed = feed_for(self.loaded, length=32, prompt=None)
        self.objective = open_objective(self.loaded, self.feed, loss, seed=3, labels=labels)
        inputs = sample_inputs(self.loaded)
        self.sites = gradient_sites(self.subject.sites, lambda: self.loaded.body(**inputs))
        documents = [Document(f"d{n}", text) for n, text in enumerate(texts)]
        prepared = [self.feed.prepare(each) for each in documents]
        self.batches = [prepared[n : n + SIZE] for n in range(0, len(prepared), SIZE)]

    def keys(self, batch):
        return document_keys(self.feed.batch(batch), 0)

    def sums(self, names, proxies, **how):
        """Run all micro-batches as the command does."""
        sums = GradientSums(proxies, **how)
        runner = Backward(self.sites, self.objective, seed=3, every=2)
        ears = Ears(
            activations=sums.add_activations,
            gradients=sums.add,
            shuffled=lambda site, each: sums.add(site, each, shuffled=True),
            weights=sums.add_weights,
        )
        self.losses = []
        for number, batch in enumerate(self.batches):
            keys = self.keys(batch)
            targets = self.objective.targets(batch, keys)

            def begin(rows, targets=targets, keys=keys, number=number):
                sums.begin(
                    self.objective.keys_of(keys),
                    rows,
                    tokens=targets.tokens,
                    real=targets.real,
                    number=number,
                    late=number >= len(self.batches) / 2,
                )

            self.losses.append(runner.run(names, targets, number, ears, begin).loss)
        return sums.finish().held

    def plain(self, batch, name, labels=None, every=True):
        """Return the loss and the gradient of each block's output, by plain torch."""
        model, body = self.loaded.model, self.loaded.body
        targets = self.objective.targets(batch, self.keys(batch))
        found = []
        block = body.get_submodule(name)
        handle = block.register_forward_hook(
            lambda _m, _i, out: found.append(out if torch.is_tensor(out) else out[0])
        )
        parameters = list(model.parameters())
        for each in parameters:
            each.requires_grad_(True)
        try:
            output = model(**targets.batch.inputs)
            wanted = targets.labels if labels is None else labels
            logits = output.logits if targets.rows is None else output.logits[targets.rows]
            loss = cross_entropy(logits, wanted, reduction="sum")
            (gradient,) = torch.autograd.grad(loss, found[0])
        finally:
            handle.remove()
            for each in parameters:
                each.requires_grad_(False)
        rows = targets.rows
        return float(loss.detach()), gradient, rows


def basis_of(width, rank=4, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(width, rank)))[0]


def stored(accumulator):
    """Return the whole scatter about zero, and the energies, of an accumulator."""
    seen = accumulator.finalize()
    outer = np.einsum("s,sd,se->de", seen.share_rows, seen.share_mean, seen.share_mean)
    return seen.scatter.sum(axis=0) + outer, seen.sums.sum(axis=(0, 1, 2)), seen


def close(found, expected, tolerance):
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("dtype", PRECISION, ids=str)
@pytest.mark.parametrize("folder", ["speaker", "untied", "filler"])
def test_gradients_of_the_stream_are_those_of_plain_torch(folder, dtype, texts, request):
    passes = Passes(request.getfixturevalue(folder), texts, dtype=dtype)
    blocks = "encoder.layer" if folder == "filler" else "h"
    basis = basis_of(24)
    names = ["grad.0", "grad.2"]
    held = passes.sums(names, dict.fromkeys(names, basis), folded=True)
    for name in names:
        rows, control, early = [], [], 0
        for number, batch in enumerate(passes.batches):
            loss, gradient, where = passes.plain(batch, f"{blocks}.{name[-1]}")
            assert passes.losses[number] == pytest.approx(loss, rel=1e-5)
            rows.append(gradient[where].double().numpy())
            early += len(rows[-1]) if number < len(passes.batches) / 2 else 0
            if number % 2 == 0:
                targets = passes.objective.targets(batch, passes.keys(batch))
                labels = shuffle(targets.labels, 3, number)
                _, other, _ = passes.plain(batch, f"{blocks}.{name[-1]}", labels)
                control.append(other[where].double().numpy())
        for kind, parts in ((Gradients, rows), (ShuffledGradients, control)):
            every = np.concatenate(parts)
            products, sums, seen = stored(held[name, "all"][kind])
            close(products, every.T @ every, PRECISION[dtype])
            assert sums[0] == len(every) == seen.count
            close(sums[1], np.square(every).sum(), PRECISION[dtype])
            close(sums[2:], np.square(every @ basis).sum(axis=0), PRECISION[dtype])
        assert stored(held[name, "all"][Gradients])[2].sums[:, 0, :, 0].sum() == early


def test_the_gradient_of_a_token_does_not_depend_on_its_batch(speaker, texts):
    passes = Passes(speaker, texts)
    together = passes.sums(["grad.1"], {"grad.1": basis_of(24)})
    passes.batches = [[each] for batch in passes.batches for each in batch]
    alone = passes.sums(["grad.1"], {"grad.1": basis_of(24)})
    first, second = (held["grad.1", "all"][Gradients] for held in (together, alone))
    close(stored(first)[0], stored(second)[0], 1e-10)
    np.testing.assert_allclose(first.parts["sums"].sum(1), second.parts["sums"].sum(1), 1e-9)


@pytest.mark.parametrize("dtype", PRECISION, ids=str)
@pytest.mark.parametrize(
    ("folder", "module"),
    [("speaker", "h.1.mlp.c_fc"), ("filler", "encoder.layer.1.attention.self.query")],
)
def test_weight_gradients_are_those_of_plain_torch(folder, module, dtype, texts, request):
    passes = Passes(request.getfixturevalue(folder), texts, dtype=dtype)
    site, basis = f"gradw.{module}", basis_of(24)
    held = passes.sums([site], {site: basis}, folded=True)
    layer = passes.loaded.body.get_submodule(module)
    products = expected = 0.0
    rows = 0
    rng = np.random.default_rng(0)
    for batch in passes.batches:
        targets = passes.objective.targets(batch, passes.keys(batch))
        kept = {}
        hook = layer.register_forward_pre_hook(lambda _m, i, kept=kept: kept.update(x=i[0]))
        layer.weight.requires_grad_(True)
        output = passes.loaded.model(**targets.batch.inputs)
        loss = cross_entropy(output.logits[targets.rows], targets.labels, reduction="sum")
        (weight,) = torch.autograd.grad(loss, layer.weight)
        layer.weight.requires_grad_(False)
        hook.remove()
        weight = weight.double().numpy()
        weight = weight if weight.shape[1] == 24 and folder == "filler" else weight.T
        products = products + weight.T @ weight
        rows += len(weight)
        real = targets.real
        if dtype == torch.float64:
            x = kept["x"][real].detach().numpy()
            delta = deltas(passes, layer, targets)[real].numpy()
            draws = [delta[rng.permutation(len(delta))].T @ x for _ in range(400)]
            expected = expected + np.mean([each.T @ each for each in draws], axis=0)
    found, sums, seen = stored(held[site, "all"][Gradients])
    close(found, products, PRECISION[dtype])
    assert seen.count == rows == sums[0]
    close(sums[2:], np.einsum("dk,de,ek->k", basis, products, basis), PRECISION[dtype])
    assert seen.documents == len(passes.batches)
    if dtype == torch.float64:  # 400 permutations leave an error of a twentieth of its size
        control, energies, _ = stored(held[site, "all"][ShuffledGradients])
        assert np.abs(control - expected).max() < 0.05 * np.abs(expected).max()
        assert energies[1] == pytest.approx(np.trace(expected), rel=0.03)


def deltas(passes, layer, targets):
    """Return the gradient of a map's output, by plain torch."""
    kept = []
    handle = layer.register_forward_hook(
        lambda _m, _i, out: kept.append(out.requires_grad_(True))
    )
    output = passes.loaded.model(**targets.batch.inputs)
    handle.remove()
    loss = cross_entropy(output.logits[targets.rows], targets.labels, reduction="sum")
    return torch.autograd.grad(loss, kept[0])[0]


def test_the_shuffled_control_takes_the_mechanical_part_away():
    """A linear map whose inputs have a mean: most of the share in it is the inputs' own.

    With a backward signal that knows nothing of the inputs the ratio is one; a signal that
    follows one direction of the inputs leaves a planted effect above it.
    """
    rng = np.random.default_rng(0)
    basis = np.eye(16)[:, :2]
    sums = {name: GradientSums({"gradw.w": basis}) for name in ("chance", "planted")}
    for number in range(64):
        x = rng.normal(size=(200, 16)) * np.r_[4.0, 4.0, np.ones(14)]
        delta = rng.normal(size=(200, 8))
        follows = delta + 0.5 * x[:, :1]
        for name, signal in (("chance", delta), ("planted", follows)):
            here = sums[name]
            here.begin(
                np.array([number], dtype=np.uint64), torch.ones(1, 200) > 0, number=number
            )
            here.add_weights("gradw.w", torch.tensor(x)[None], torch.tensor(signal)[None])
    found = {}
    for name, each in sums.items():
        held = each.finish().held["gradw.w", "all"]
        shares = []
        for kind in (Gradients, ShuffledGradients):
            total = held[kind].finalize().sums.sum(axis=(0, 1, 2))
            shares.append(total[2:].sum() / total[1])
        found[name] = shares
    mechanical = 32 / 46  # of the inputs' own variance
    assert found["chance"][1] == pytest.approx(mechanical, abs=0.01)
    assert found["chance"][0] / found["chance"][1] == pytest.approx(1.0, abs=0.03)
    assert found["planted"][1] == pytest.approx(mechanical, abs=0.01)
    assert found["planted"][0] > 0.95


def test_a_model_without_a_head_compares_halves_of_documents(tiny, texts):
    passes = Passes(tiny, texts)
    assert fitting_losses(passes.loaded, passes.feed) == ("contrastive",)
    held = passes.sums(["grad.2"], {"grad.2": basis_of(24)})
    every = []
    for batch in passes.batches:
        targets = passes.objective.targets(batch, passes.keys(batch))
        states = passes.loaded.body(**targets.batch.inputs)[0].detach().requires_grad_(True)
        mask = targets.real[..., None]
        vectors = normalize((states * mask).sum(1) / mask.sum(1), dim=-1)
        logits = 20 * vectors[: len(batch)] @ vectors[len(batch) :].T
        loss = cross_entropy(logits, torch.arange(len(batch)), reduction="sum")
        (gradient,) = torch.autograd.grad(loss, states)
        every.append(gradient[mask[..., 0]].numpy())
    every = np.concatenate(every)
    close(stored(held["grad.2", "all"][Gradients])[0], every.T @ every, 1e-8)


def test_rows_of_a_classifier_are_the_positions_that_its_head_reads(tiny, texts, tmp_path):
    from transformers import AutoTokenizer, BertForSequenceClassification

    torch.manual_seed(0)
    model = BertForSequenceClassification.from_pretrained(tiny, num_labels=3)
    model.save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(tiny).save_pretrained(tmp_path)
    labels = LabelReader(load_model(tmp_path).loaded)
    for number in range(len(texts)):
        labels.see(f"d{number}", str(number % 3))
    passes = Passes(tmp_path, texts, "classification", labels=labels)
    held = passes.sums(["grad.1"], {"grad.1": basis_of(24)})
    every = [passes.plain(batch, "encoder.layer.1")[1][:, 0] for batch in passes.batches]
    every = torch.cat(every).numpy()  # of [CLS] alone
    found, sums, _ = stored(held["grad.1", "all"][Gradients])
    assert sums[0] == len(texts)
    close(found, every.T @ every, 1e-8)
    with pytest.raises(SourceError, match="one of 3 classes, got 'nine'"):
        labels.see("d0", "nine")
    with pytest.raises(ConfigError, match="needs classes"):
        Passes(tmp_path, texts, "classification")


def test_a_loss_without_its_head_is_refused_and_the_one_that_fits_named(tiny, speaker, texts):
    for folder, loss, fitting in (
        (tiny, "masked", "contrastive"),
        (speaker, "masked", "causal"),
        (speaker, "classification", "causal"),
        (tiny, "causal", "contrastive"),
    ):
        with pytest.raises(ConfigError, match=f"cannot compute a {loss} loss") as error:
            Passes(folder, texts, loss)
        assert f"--loss={fitting} fits" in error.value.hint
    with pytest.raises(ConfigError, match="no loss is called 'mse'"):
        Passes(speaker, texts, "mse")


def test_a_loss_that_is_not_finite_names_its_step(speaker, texts):
    passes = Passes(speaker, texts, dtype=torch.float32)
    passes.loaded.body.h[2].mlp.c_proj.bias.data[:] = torch.nan
    with pytest.raises(IsoscopeError, match="finite loss at micro-batch 0, got nan"):
        passes.sums(["grad.0"], {"grad.0": basis_of(24)})


def test_frozen_weights_have_no_gradient_in_training(speaker):
    body = load_model(speaker).loaded.body
    with pytest.raises(IsoscopeError, match=r"frozen ones: h\.0\.mlp\.c_fc"):
        check_trained(body, ["h.0.mlp.c_fc"])
    body.h[0].mlp.c_fc.weight.requires_grad_(True)
    check_trained(body, ["h.0.mlp.c_fc"])


def test_concepts_are_the_tokens_that_reach_furthest(speaker, texts):
    passes = Passes(speaker, texts)
    basis = basis_of(24, 3)
    concepts = Concepts(24, basis, np.full(24, 0.1))
    passes.sums(
        ["grad.1"],
        {"grad.1": basis},
        concepts={"grad.1": concepts},
        decode=lambda ids: passes.loaded.tokenizer.decode(ids),
    )
    best = {}
    for batch in passes.batches:
        targets = passes.objective.targets(batch, passes.keys(batch))
        states = []
        handle = passes.loaded.body.h[1].register_forward_hook(
            lambda _m, _i, out, states=states: states.append(first_tensor(out))
        )
        passes.loaded.body(**targets.batch.inputs)
        handle.remove()
        along = (states[0][targets.rows].numpy() - 0.1) @ basis
        for token, row in zip(targets.tokens[targets.rows].tolist(), along, strict=True):
            for direction, value in enumerate(row):
                for sign in (1, -1):
                    key = direction, sign, token
                    best[key] = max(best.get(key, -np.inf), sign * value)
    for direction, concept in enumerate(concepts.finalize()):
        for sign, end in zip((1, -1), concept.ends, strict=True):
            reach = {t: v for (d, s, t), v in best.items() if (d, s) == (direction, sign)}
            expected = sorted(reach.values(), reverse=True)[:6]
            assert [sign * each.reach for each in end] == pytest.approx(expected)
            assert all(reach[each.token] == pytest.approx(sign * each.reach) for each in end)
            assert all(each.word.strip() in each.context for each in end)

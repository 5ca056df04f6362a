"""The KL probe: against a model whose parameters are zero, and as it was afterwards."""

import copy

import numpy as np
import pytest
import torch

import isoscope as iso
from isoscope.errors import ConfigError, UndefinedError
from isoscope.lab.zero import worker as zeroed
from isoscope.source.corpus import open_corpus
from isoscope.study.model import subject_of


def bits(model):
    """Return every parameter and buffer as bytes."""
    parts = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return {name: each.detach().numpy().tobytes() for name, each in parts.items()}


def hooks(model):
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def slow_kl(model, changed, tokenizer, texts, length):
    """Return the mean over tokens of KL between two models, one document at a time."""
    total, count = 0.0, 0
    for text in texts:
        given = tokenizer(text, return_tensors="pt", truncation=True, max_length=length)
        given.pop("token_type_ids", None)
        with torch.inference_mode():
            p, q = (
                torch.log_softmax(each(**given).logits[0].double(), -1)
                for each in (model, changed)
            )
        total += float((p.exp() * (p - q)).sum())
        count += len(p)
    return total / count


def without(model, names, dimension):
    changed = copy.deepcopy(model)
    with torch.no_grad():
        for name in names:
            changed.get_submodule(name).weight[dimension] = 0
            changed.get_submodule(name).bias[dimension] = 0
    return changed


@pytest.mark.parametrize("norms", ["final", 2])
def test_kl_is_that_to_a_model_with_zeroed_parameters(speaking, texts, norms):
    loaded = speaking.loaded
    found = iso.zero(speaking, texts, norms=norms, dimensions=[3, 11], documents=40, random=0)
    assert found.shared["documents"] == 40
    for each in found:
        names = [f"transformer.{name}" for name in found.shared["norms"]]
        changed = without(loaded.model, names, each.dimension)
        slow = slow_kl(loaded.model, changed, loaded.tokenizer, texts, 128)
        # Padding moves the float32 logits in their seventh digit.
        assert each.kl == pytest.approx(slow, rel=1e-4, abs=1e-9)
        assert each.kl > 0
        assert each.low < each.kl < each.high
        assert each.chosen == "given"


def test_masked_language_models_have_a_distribution_too(masker, texts):
    subject = subject_of(masker)
    loaded = subject.loaded
    found = iso.zero(subject, texts, dimensions=[5], documents=40, random=0)
    names = [f"bert.{name}" for name in found.shared["norms"]]
    assert names == ["bert.encoder.layer.2.output.LayerNorm"]
    changed = without(loaded.model, names, 5)
    slow = slow_kl(loaded.model, changed, loaded.tokenizer, texts, 64)
    assert found[0].kl == pytest.approx(slow, rel=1e-4)


def test_the_model_is_left_exactly_as_it_was(speaking, texts):
    model = speaking.loaded.model
    before = bits(model)
    addresses = [each.data_ptr() for each in model.parameters()]
    iso.zero(speaking, texts, documents=8, norms=3)
    assert bits(model) == before
    assert [each.data_ptr() for each in model.parameters()] == addresses
    assert hooks(model) == 0
    assert not model.training


@pytest.mark.parametrize("failing", ["_divergence", "_log_probabilities"])
def test_it_is_left_as_it_was_when_the_probe_fails(speaking, texts, monkeypatch, failing):
    model = speaking.loaded.model
    before, calls = bits(model), []
    real = getattr(zeroed, failing)

    def fails(*given):
        calls.append(given)
        if len(calls) == 3:
            raise MemoryError("planted")
        return real(*given)

    monkeypatch.setattr(zeroed, failing, fails)
    with pytest.raises(MemoryError, match="planted"):
        iso.zero(speaking, texts, documents=8)
    assert bits(model) == before
    assert hooks(model) == 0


def test_it_is_left_as_it_was_when_the_model_fails_while_masked(speaking, texts, monkeypatch):
    model = speaking.loaded.model
    before = bits(model)
    real = zeroed._log_probabilities

    def fails(subject, batch):
        if hooks(model):
            bad = copy.copy(batch)
            object.__setattr__(bad, "inputs", {"input_ids": torch.tensor([[10_000]])})
            return real(subject, bad)
        return real(subject, batch)

    monkeypatch.setattr(zeroed, "_log_probabilities", fails)
    with pytest.raises(IndexError):
        iso.zero(speaking, texts, documents=8)
    assert bits(model) == before
    assert hooks(model) == 0


def test_the_dimensions_with_the_largest_shares_are_taken_and_random_ones(speaking, texts):
    found = iso.zero(speaking, texts, documents=12, top=3, random=4)
    how = [each.chosen for each in found]
    assert how == ["top"] * 3 + ["random"] * 4
    assert len({each.dimension for each in found}) == 7
    body, parts = speaking.loaded.body, []
    opened = open_corpus(texts)
    for ordinal in opened.order(0)[:12]:
        ids = speaking.loaded.tokenizer(texts[ordinal], return_tensors="pt").input_ids
        with torch.inference_mode():
            parts.append(body(ids).last_hidden_state[0].double().numpy())
    rows = np.concatenate(parts)
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    split = units.sum(0) ** 2 - (units**2).sum(0)
    assert [e.dimension for e in found[:3]] == np.argsort(-split)[:3].tolist()
    shares = [e.share for e in found]
    slow = [split[e.dimension] / split.sum() for e in found]
    assert shares == pytest.approx(slow, abs=1e-5)
    assert found.to_dict()[0]["chosen"] == "top"


def test_random_dimensions_may_stand_beside_given_ones(speaking, texts):
    given = {"documents": 8, "dimensions": [3, 11], "random": 3}
    found = iso.zero(speaking, texts, **given)
    assert [each.chosen for each in found] == ["given"] * 2 + ["random"] * 3
    assert len({each.dimension for each in found}) == 5
    again = iso.zero(speaking, texts, **given)
    assert again == found


def test_progress_counts_passes(speaking, texts):
    ticks = []
    iso.zero(
        speaking,
        texts,
        documents=10,
        batch=4,
        dimensions=[1, 2],
        random=0,
        progress=lambda *tick: ticks.append(tick),
    )
    assert ticks == [(done, 9) for done in (0, 2, 3, 5, 6, 8, 9)]


def test_batching_changes_nothing(speaking, texts):
    one, seven = (
        iso.zero(speaking, texts, dimensions=[2], documents=20, batch=size, random=0)
        for size in (1, 7)
    )
    assert one.shared["tokens"] == seven.shared["tokens"]
    assert one[0].kl == pytest.approx(seven[0].kl, rel=1e-4)
    assert one[0].high == pytest.approx(seven[0].high, rel=1e-4)


def test_few_documents_have_no_interval(speaking, texts):
    found = iso.zero(speaking, texts, dimensions=[2], documents=4, random=0)
    assert found[0].low is None
    assert found[0].kl > 0


def test_a_model_that_predicts_no_tokens_says_so(tiny, texts):
    with pytest.raises(UndefinedError, match="got BertModel, which has no such head") as raised:
        iso.zero(tiny, texts)
    assert raised.value.slug == "no-output-distribution"
    assert "ForCausalLM" in raised.value.hint


@pytest.mark.parametrize(("wrong", "got"), [([24], "24"), ([-1], "-1"), ([], "none")])
def test_dimensions_that_are_not_there_are_refused(speaking, texts, wrong, got):
    with pytest.raises(ConfigError, match=f"from 0 to 23, got {got}") as raised:
        iso.zero(speaking, texts, dimensions=wrong)
    assert raised.value.slug == "dimension-range"


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_rogue_dimension_of_smollm_is_one_it_speaks_with(smollm):
    subject = subject_of(smollm)
    before = bits(subject.loaded.model)
    found = iso.zero(subject, documents=8, length=32, random=2)
    assert found[0].dimension == 17
    assert found[0].kl > 1.0 > 0.05 > np.mean([e.kl for e in found if e.chosen == "random"])
    assert bits(subject.loaded.model) == before

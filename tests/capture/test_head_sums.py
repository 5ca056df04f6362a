"""Sums over heads against eager attention, in every family that has heads."""

import sys
from functools import partial

import numpy as np
import pytest
import torch
from families import FAMILIES, TEXT, Family
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import isoscope.capture.scores as scores_module
from isoscope.accumulate import EarlyKeys, EarlyQueries, Keys, Queries, QueryScores
from isoscope.accumulate.heads import STATISTICS
from isoscope.capture.feed.base import Marks
from isoscope.capture.head_sums import HeadSums, draw_queries
from isoscope.capture.heads import Heads
from isoscope.capture.sites import Sites
from isoscope.errors import UndefinedError
from isoscope.hashing import named_documents

WITH_HEADS = [name for name, family in FAMILIES.items() if family.heads]
PADDED = [name for name in WITH_HEADS if FAMILIES[name].takes == "text"]
LENGTHS = (6, 4)  # of padded documents


class Marked:
    """Two documents, padded on the right or not."""

    documents = ("first", "second")

    def __init__(self, lengths=None):
        self.lengths = lengths

    def marks(self, stack, length):
        real = torch.ones(2, length, dtype=torch.bool)
        if self.lengths is not None and stack != "dec":
            real = torch.arange(length)[None] < torch.tensor(self.lengths)[:, None]
        return Marks(real, torch.zeros_like(real), None)


def inputs_of(family, padded):
    """Return the inputs of a family, with a mask of padding where that is wanted."""
    found = family.inputs()
    if padded:
        mask = torch.arange(found["input_ids"].shape[1])[None] < torch.tensor(LENGTHS)[:, None]
        found["attention_mask"] = mask.long()
    return found


def heard(model, inputs, lengths=None, queries=None, times=10.0):
    """Return the sums over the heads of a model in one pass, and what was found."""
    heads = Heads.discover(model, lambda: model(**inputs))
    sums = HeadSums(queries=queries, times=times, seed=0, folded=False)
    batch = Marked(lengths)
    sums.begin(batch)
    with heads.listening(sums.hear, sums.enter) as passes, torch.inference_mode():
        passes.restart()
        model(**inputs)
    return sums.finish(), heads


def eager(family, inputs):
    """Return the probabilities of eager attention by stack, a list of (B, H, T, S)."""
    model = family.built(attn_implementation=implementation(family))
    model.config.output_attentions = True
    with torch.no_grad():
        found = model(**inputs, output_attentions=True)
    if len(family.layers) == 2:
        return {
            "enc": found.encoder_attentions,
            "dec": found.decoder_attentions,
            "cross": found.cross_attentions,
        }
    attentions = found.attentions
    if family.kind == "canine":  # those of characters come before and after
        attentions = [each for each in attentions if each.shape[-1] == 8]
    return {"": attentions}


def implementation(family):
    own = ("canine", "deberta-v2", "mpnet", "bloom", "gptj", "gpt_neo", "codegen")
    own += ("mpt", "xglm", "deberta")
    return None if family.kind in own else "eager"


def listened(name):
    """Return the model that is listened to, fused where it can be.

    Falcon with alibi computes something else with eager attention, by 0.09 of its output.
    """
    return FAMILIES[name].built(attn_implementation="eager" if name == "falcon-rw" else None)


def expected(probabilities, lengths, places):
    """Return the mean statistics of some queries, by the definitions, one query at a time."""
    rows = []
    for document, chosen in enumerate(places):
        for place in chosen:
            p = probabilities[document, place].double().numpy()
            p = p[p > 1e-12]  # masked keys have none
            entropy = -(p * np.log(p)).sum()
            rows.append(
                (
                    lengths[document] / len(chosen),
                    np.std(np.log(p)),  # scores up to a constant
                    entropy / np.log(len(p)) if len(p) > 1 else np.nan,
                    p.max(),
                    probabilities[document, place, 0].item(),
                )
            )
    weight, spread, relative, largest, first = np.array(rows).T
    several = np.isfinite(relative)
    return {
        "spread": np.average(spread, weights=weight),
        "entropy": np.average(relative[several], weights=weight[several]),
        "largest": np.average(largest, weights=weight),
        "first": np.average(first, weights=weight),
    }


def read(survey, site):
    scores = survey.held[site, "all"][QueryScores].finalize().sums.sum(axis=0)
    found = dict(zip(STATISTICS, scores, strict=True))
    return {
        "spread": found["spread"] / found["weight"],
        "entropy": found["entropy"] / found["several"],
        "largest": found["largest"] / found["weight"],
        "first": found["first"] / found["weight"],
    }


def assert_like_eager(name, *, padded=False, queries=None):
    family = FAMILIES[name]
    inputs = inputs_of(family, padded)
    lengths = LENGTHS if padded else None
    survey, heads = heard(listened(name), inputs, lengths, queries)
    attentions = eager(family, inputs)
    assert not heads.remarks
    assert {each.stack for each in heads.layers} == set(attentions)
    for layer in heads.layers:
        probabilities = attentions[layer.stack][layer.layer]
        asked = probabilities.shape[2]
        there = (
            [asked, asked] if lengths is None or layer.stack in ("dec", "cross") else LENGTHS
        )
        keys = named_documents(np.array(Marked.documents))
        places = draw_queries(keys, np.array(there), queries, 0)
        assert layer.heads == probabilities.shape[1] == family.heads
        for number, site in enumerate(layer.sites):
            # 1e-5: float32, of scores that fused and eager attention add up in another order
            assert read(survey, site) == pytest.approx(
                expected(probabilities[:, number], there, places), abs=1e-5, rel=1e-5
            ), site


GEMMA2 = {
    "num_key_value_heads": 2, "head_dim": 8, "sliding_window": 3, "query_pre_attn_scalar": 16,
    "attn_logit_softcapping": 0.05,
}  # fmt: skip
OTHERS = {
    "a window": Family("mistral", {**TEXT, "num_key_value_heads": 2, "sliding_window": 3}),
    "a soft cap": Family("gemma2", {**TEXT, **GEMMA2}),
    "a logit of no key": Family(
        "gpt_oss",
        {
            **TEXT, "num_key_value_heads": 2, "head_dim": 8, "num_local_experts": 2,
            "num_experts_per_tok": 1, "sliding_window": 3, "bos_token_id": 1, "eos_token_id": 2,
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_windows_soft_caps_and_logits_of_no_key_are_as_in_eager_attention(name, monkeypatch):
    family = OTHERS[name]
    monkeypatch.setitem(FAMILIES, name, family)
    attentions = eager(family, family.inputs())[""]
    if name == "a logit of no key":
        assert attentions[0].sum(dim=-1).max() < 0.9
    else:
        assert_like_eager(name)
    if name != "a soft cap":
        assert (attentions[0][:, :, 5, :3] == 0).all()  # outside of the window
    survey, heads = heard(family.built(), family.inputs())
    scores = survey.held["head.0.1", "all"][QueryScores].finalize().sums.sum(axis=0)
    largest = attentions[0][:, 1].amax(dim=-1).mean().item()
    assert scores[4] / scores[0] == pytest.approx(largest, abs=1e-6)
    entropy = -torch.special.xlogy(attentions[0][:, 1], attentions[0][:, 1]).sum(dim=-1)
    visible = torch.arange(1, 7).clamp(max=3)
    relative = (entropy / visible.log())[:, 1:].mean().item()
    assert scores[3] / scores[2] == pytest.approx(relative, abs=1e-5)
    assert {each.key_heads for each in heads.layers} == {2}


OWN_PRODUCTS = {
    "mpt": {"d_model": 32, "n_heads": 4, "n_layers": 2, "vocab_size": 99, "max_seq_len": 32},
    "xglm": {
        "d_model": 32, "attention_heads": 4, "num_layers": 2, "ffn_dim": 64, "vocab_size": 99,
    },
    "deberta": {**TEXT, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
}  # fmt: skip


@pytest.mark.parametrize("kind", OWN_PRODUCTS)
def test_attention_that_models_multiply_out_themselves_is_read_too(kind, monkeypatch):
    """One projection of all three, alibi, scores without an axis of heads, and two biases."""
    monkeypatch.setitem(FAMILIES, kind, Family(kind, OWN_PRODUCTS[kind]))
    assert_like_eager(kind, padded=True)


@pytest.mark.parametrize("weights", [False, True])
def test_multihead_attention_of_torch_is_read(weights):
    """It calls one function, which hides what it calls from a mode."""

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(12, 3, batch_first=True)

        def forward(self, states):
            return states + self.attention(states, states, states, need_weights=weights)[0]

    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([Layer(), Layer()])

        def forward(self, states):
            for layer in self.layers:
                states = layer(states)
            return states

    torch.manual_seed(0)
    model, states = Stack().eval(), torch.randn(2, 6, 12)
    survey, heads = heard(model, {"states": states})
    assert [(each.heads, each.width) for each in heads.layers] == [(3, 4)] * 2
    attention = model.layers[0].attention
    with torch.no_grad():
        _, p = attention(states, states, states, average_attn_weights=False)
    places = [np.arange(6)] * 2
    for number in range(3):
        assert read(survey, f"head.0.{number}") == pytest.approx(
            expected(p[:, number], (6, 6), places), abs=1e-5, rel=1e-5
        )
    home = torch.nn.functional
    assert home.has_torch_function is torch.overrides.has_torch_function  # restored


@pytest.mark.parametrize("name", WITH_HEADS)
def test_all_queries_are_as_in_eager_attention(name):
    assert_like_eager(name)


@pytest.mark.parametrize("name", PADDED)
def test_sampled_queries_of_padded_documents_are_as_in_eager_attention(name):
    assert_like_eager(name, padded=True, queries=3)


# --- queries and keys -----------------------------------------------------------------------


def stored(model, inputs, sites):
    """Return the activations of some sites, (B, T, d) each, as a survey hears them."""
    found = {}

    def hear(site, tensor):
        found[site] = tensor.double().numpy().copy()

    known = Sites.discover(model, model, lambda: model(**inputs))
    with known.listening(sites, hear) as calls, torch.inference_mode():
        calls.restart()
        model(**inputs)
    return found


@pytest.mark.parametrize("name", ["bert", "llama", "gptj", "falcon-40b", "t5"])
def test_means_and_covariances_are_those_of_stored_activations(name):
    family = FAMILIES[name]
    inputs, prefix = inputs_of(family, padded=True), family.prefixes[0]
    model = family.built()
    sites = [f"{prefix}q.1.3", f"{prefix}k.1.{family.key_heads - 1}"]
    rows = stored(model, inputs, sites)
    survey, _ = heard(model, inputs, LENGTHS)
    places = (f"{prefix}head.1.3", Queries), (sites[1], Keys)
    for site, (place, kind) in zip(sites, places, strict=True):
        real = np.concatenate([rows[site][n, :length] for n, length in enumerate(LENGTHS)])
        found = survey.held[place, "all"][kind].finalize()
        mean = found.sizes @ found.mean / found.sizes.sum()
        # 1e-6: sums of float32 rows
        assert mean == pytest.approx(real.mean(axis=0), abs=1e-6)
        units = real / np.linalg.norm(real, axis=1, keepdims=True)
        assert found.units.sum(axis=0) == pytest.approx(units.sum(axis=0), abs=1e-5)
        total = np.einsum("s,sd,se->de", found.share_rows, found.share_mean, found.share_mean)
        second = (total + found.scatter.sum(axis=0)) / len(real)
        assert second == pytest.approx(real.T @ real / len(real), abs=1e-5)


@pytest.mark.parametrize("name", ["llama", "gpt_neox", "gptj", "falcon", "falcon-40b"])
def test_queries_and_keys_before_rotation_are_rotated_back(name):
    """At the first position nothing is rotated; before rotation repeated tokens are alike."""
    family = FAMILIES[name]
    model = family.built()
    inputs = {"input_ids": torch.full((2, 6), 7)}
    survey, heads = heard(model, inputs)
    assert all(each.rotated for each in heads.layers)
    start = {"input_ids": torch.full((2, 1), 7)}
    first = stored(model, start, ["q.0.1", "k.0.0"])  # of one token: not rotated
    for site, kind, rows in (
        ("head.0.1", EarlyQueries, first["q.0.1"]),
        ("k.0.0", EarlyKeys, first["k.0.0"]),
    ):
        mean = survey.held[site, "all"][kind].finalize().mean
        assert mean == pytest.approx(rows[:, 0], abs=1e-6)
        rotated = survey.held[site, "all"][Queries if kind is EarlyQueries else Keys]
        assert np.abs(rotated.finalize().mean - rows[:, 0]).max() > 1e-3


def test_models_without_rotation_have_nothing_before_it():
    survey, heads = heard(FAMILIES["bert"].built(), FAMILIES["bert"].inputs())
    assert not any(each.rotated for each in heads.layers)
    assert not any(EarlyQueries in here for here in survey.held.values())


def test_listening_changes_no_bit_of_the_output_and_leaves_nothing_behind():
    family = FAMILIES["llama"]
    model = family.built()
    home = sys.modules[type(model).__module__]
    before = home.apply_rotary_pos_emb
    with torch.inference_mode():
        plain = model(**family.inputs()).last_hidden_state
    heads = Heads.discover(model, lambda: model(**family.inputs()))
    with (
        heads.listening(lambda _layer, call: call.pair_before("interface")) as passes,
        torch.inference_mode(),
    ):
        assert home.apply_rotary_pos_emb is not before
        passes.restart()
        assert torch.equal(model(**family.inputs()).last_hidden_state, plain)
    assert home.apply_rotary_pos_emb is before
    assert not model.layers[0].self_attn._forward_pre_hooks


# --- planted --------------------------------------------------------------------------------


class PlantedAttention(nn.Module):
    """Attention whose queries and keys are parts of its input, one head."""

    def forward(self, states):
        query, key = states[..., :4][:, None], states[..., 4:8][:, None]
        found = nn.functional.scaled_dot_product_attention(query, key, key)
        return nn.functional.pad(found[:, 0], (0, 5))


class Block(nn.Module):
    """A block that passes on what it receives."""

    def __init__(self):
        super().__init__()
        self.attention = PlantedAttention()

    def forward(self, states):
        return states + 0 * self.attention(states)


class Model(nn.Module):
    """One block."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block()])

    def forward(self, states):
        for block in self.blocks:
            states = block(states)
        return states


def test_a_sink_of_known_mass_is_read_exactly():
    """Two of 8 keys have score log 3 and all others 0; one of the two has a great norm."""
    states = torch.zeros(2, 8, 9)
    states[:, :, 0] = 2.0  # queries; the scale is one half
    states[:, [0, 3], 4] = np.log(3)
    states[:, :, 8] = 1.0
    states[:, 3, 8] = 1000.0
    survey, _ = heard(Model(), {"states": states})
    scores = survey.held["head.0.0", "all"][QueryScores].finalize()
    found = dict(zip(STATISTICS, scores.sums.sum(axis=0) / 16, strict=True))
    p = np.array([3, 1, 1, 3, 1, 1, 1, 1]) / 12
    assert found["sink"] == pytest.approx(3 / 12, abs=1e-7)
    assert found["first"] == pytest.approx(3 / 12, abs=1e-7)
    assert found["largest"] == pytest.approx(3 / 12, abs=1e-7)
    assert found["entropy"] == pytest.approx(-(p * np.log(p)).sum() / np.log(8), abs=1e-6)
    assert found["spread"] == pytest.approx(np.log(3) * np.sqrt(3) / 4, abs=1e-6)
    assert found["scale"] == 0.5
    assert scores.blind == 0


def test_queries_that_see_no_key_are_counted_and_left_out():
    class Masked(PlantedAttention):
        def forward(self, states):
            query, key = states[..., :4][:, None], states[..., 4:8][:, None]
            mask = torch.ones(2, 1, 8, 8, dtype=torch.bool)
            mask[1, :, 5] = False
            found = nn.functional.scaled_dot_product_attention(query, key, key, mask)
            return nn.functional.pad(found[:, 0].nan_to_num(), (0, 5))

    model = Model()
    model.blocks[0].attention = Masked()
    torch.manual_seed(0)
    survey, _ = heard(model, {"states": torch.randn(2, 8, 9)})
    scores = survey.held["head.0.0", "all"][QueryScores].finalize()
    assert (scores.blind, scores.count) == (1, 15)
    assert scores.sums[:, 0].tolist() in ([8.0, 7.0], [7.0, 8.0])
    assert np.isfinite(scores.sums).all()


def test_numbers_that_are_not_finite_are_reported_with_their_place():
    states = torch.randn(2, 8, 9, generator=torch.Generator().manual_seed(1))
    model = Model()
    heads = Heads.discover(model, lambda: model(states=states))
    states[1, 6, 2] = torch.nan
    sums = HeadSums(queries=None, times=10.0, seed=0, folded=False)
    sums.begin(Marked())
    with heads.listening(sums.hear, sums.enter), torch.inference_mode():
        model(states=states)
    survey = sums.finish()
    assert survey.trouble["head.0.0"] == "position 6 of document 'second'"
    assert ("head.0.0", "all") not in survey.held


class Wide(PlantedAttention):
    """Attention of another width, that attends again with heads of the first one."""

    def __init__(self, *, again):
        super().__init__()
        self.again = again

    def forward(self, states):
        query, key = states[..., :3][:, None], states[..., 3:6][:, None]
        found = nn.functional.scaled_dot_product_attention(query, key, key)
        if self.again:
            super().forward(states)
        return nn.functional.pad(found[:, 0], (0, 6))


@pytest.mark.parametrize("again", [False, True])
def test_layers_may_differ_in_width_but_not_the_heads_of_one_layer(again):
    model = Model()
    model.blocks.append(Block())
    model.blocks[1].attention = Wide(again=again)
    states = torch.randn(2, 8, 9, generator=torch.Generator().manual_seed(2))
    survey, heads = heard(model, {"states": states})
    assert [each.width for each in heads.layers] == [4, 3]
    assert survey.held["head.1.0", "all"][Queries].width == 3
    text = "further heads of Wide are excluded: it attends again in the same block, with 1 "
    assert [each.startswith(text) for each in heads.remarks] == [True] * again
    assert all("heads of width 4 after 1 of width 3" in each for each in heads.remarks)


# --- sampling -------------------------------------------------------------------------------


def test_every_query_is_as_likely_as_any_other():
    keys = named_documents(np.array([f"d{n}" for n in range(4000)]))
    drawn = draw_queries(keys, np.full(4000, 37), 16, seed=3)
    counts = np.bincount(np.concatenate(drawn), minlength=37)
    assert len(counts) == 37
    # 64,000 draws over 37 places: one standard deviation is 2.4 %, and strata make it less
    assert counts / counts.mean() == pytest.approx(np.ones(37), abs=0.08)
    assert [len(each) for each in draw_queries(keys[:2], np.array([5, 16]), 16, 0)] == [5, 16]
    again = draw_queries(keys[5:6], np.array([37]), 16, seed=3)
    assert (again[0] == drawn[5]).all()


class Largest(TorchDispatchMode):
    """Notes the largest tensor that any operation of torch makes, in bytes."""

    bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        for each in found if isinstance(found, tuple | list) else (found,):
            if isinstance(each, torch.Tensor):
                self.bytes = max(self.bytes, each.untyped_storage().nbytes())
        return found


def test_memory_does_not_grow_with_the_square_of_the_length(monkeypatch):
    monkeypatch.setattr(scores_module, "ROOM", 1 << 12)
    largest = {}
    for length in (256, 1024):
        states = torch.randn(2, length, 9, generator=torch.Generator().manual_seed(0))
        with Largest() as seen:
            heard(Model(), {"states": states})  # all queries
        largest[length] = seen.bytes
    # a map of one head of both documents, one byte per score, would take 2 MiB at 1,024
    assert largest[1024] < 1 << 19
    assert largest[1024] <= 4.5 * largest[256]


def test_models_without_heads_say_so():
    for name in ("mamba", "convnext"):
        model = FAMILIES[name].built()
        with pytest.raises(UndefinedError, match="expected attention heads in x, got") as error:
            Heads.discover(model, partial(model, **FAMILIES[name].inputs()), "x")
        assert error.value.slug == "no-heads"


@pytest.mark.parametrize("kind", ["rwkv", "swin"])
def test_attention_that_cannot_be_heard_is_named_with_what_was_tried(kind):
    settings = {"image_size": 32, "patch_size": 2, "embed_dim": 8, "window_size": 4}
    settings |= {"depths": [1, 1], "num_heads": [2, 2]}
    swin = Family("swin", settings, takes="image")
    family = swin if kind == "swin" else FAMILIES[kind]
    model = family.built()
    with pytest.raises(UndefinedError, match=r"cannot read the attention of (Swin|Rwkv)") as e:
        Heads.discover(model, partial(model, **family.inputs()), "it")
    assert e.value.slug == "attention-unreadable"
    assert "attention interface" in e.value.hint and "fused product" in e.value.hint

"""Attention functions are wrapped while someone listens, and only then."""

import pytest
import torch
from families import FAMILIES
from transformers import AttentionInterface

from isoscope.capture.attention import implementations, observe_attention


def functions():
    return dict(AttentionInterface._global_mapping)


def ran(model, family="llama"):
    with torch.no_grad():
        return model(**FAMILIES[family].inputs()).last_hidden_state


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_queries_keys_and_values_are_seen_and_nothing_changes(attention):
    model = FAMILIES["llama"].built(attn_implementation=attention)
    plain, before, seen = ran(model), functions(), []
    module = model.layers[1].self_attn
    with observe_attention(model, [module], lambda *heard: seen.append(heard)):
        assert functions() != before
        assert torch.equal(ran(model), plain)
    assert [(m is module, part, tuple(t.shape)) for m, part, t in seen] == [
        (True, "q", (2, 4, 6, 8)),
        (True, "k", (2, 2, 6, 8)),
        (True, "v", (2, 2, 6, 8)),
    ]
    assert functions() == before
    assert model.config._attn_implementation == attention


def test_two_listeners_hear_both_and_the_last_to_leave_restores():
    model, before, seen = FAMILIES["bert"].built(), functions(), []
    module = model.encoder.layer[0].attention.self
    with observe_attention(model, [module], lambda *_: seen.append("outer")):
        with observe_attention(model, [module], lambda *_: seen.append("inner")):
            ran(model, "bert")
        assert functions() != before
        ran(model, "bert")
    assert seen == ["outer"] * 3 + ["inner"] * 3 + ["outer"] * 3
    assert functions() == before


def test_another_model_is_not_captured():
    model, other, seen = FAMILIES["bert"].built(), FAMILIES["bert"].built(), []
    with observe_attention(model, list(model.modules()), lambda *_: seen.append(1)):
        ran(other, "bert")
    assert seen == []


def test_an_error_leaves_nothing_behind():
    model, before = FAMILIES["gpt2"].built(attn_implementation="eager"), functions()
    with (
        pytest.raises(ZeroDivisionError),
        observe_attention(model, list(model.modules()), fails),
    ):
        ran(model, "gpt2")
    assert functions() == before


def fails(*_):
    raise ZeroDivisionError


def test_a_model_without_config_asks_for_none():
    assert implementations(torch.nn.Linear(2, 2)) == set()
    with observe_attention(torch.nn.Linear(2, 2), [], fails):
        pass

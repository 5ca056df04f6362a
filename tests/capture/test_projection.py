"""Attention without an interface is overheard at its projections or its method."""

import pytest
import torch
from families import FAMILIES
from torch import nn

from isoscope.capture.attention import observe_projections


def attention_of(name, model):
    block = model.get_submodule(FAMILIES[name].blocks[0])[0]
    return {
        "gptj": lambda: block.attn,
        "falcon": lambda: block.self_attention,
        "falcon-40b": lambda: block.self_attention,
        "bloom": lambda: block.self_attention,
        "canine": lambda: block.attention.self,
        "deberta-v2": lambda: block.attention.self,
    }[name]()


NAMES = ["gptj", "falcon", "falcon-40b", "bloom", "canine", "deberta-v2"]


@pytest.mark.parametrize("name", NAMES)
def test_every_part_is_overheard_head_by_head(name):
    family = FAMILIES[name]
    model, seen = family.built(), {}
    module = attention_of(name, model)
    members = sorted(vars(module))
    with (
        torch.no_grad(),
        observe_projections([module], lambda _, part, t: seen.update({part: t})),
    ):
        model(**family.inputs())
    assert set(seen) == set("qkv")
    assert seen["q"].shape[1] == family.heads
    assert seen["k"].shape[1] == seen["v"].shape[1] == family.key_heads
    assert {t.shape[3] for t in seen.values()} == {family.head_width}
    assert sorted(vars(module)) == members
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in module.modules())


def test_queries_of_falcon_are_turned_by_their_position():
    family = FAMILIES["falcon"]
    model, seen = family.built(), {}
    module, raw = model.h[0].self_attention, []
    module.query_key_value.register_forward_hook(lambda *a: raw.append(a[2]))
    with (
        torch.no_grad(),
        observe_projections([module], lambda _, part, t: seen.update({part: t})),
    ):
        model(**family.inputs())
    plain = raw[0][..., :32].unflatten(-1, (4, 8)).transpose(1, 2)
    torch.testing.assert_close(seen["q"][:, :, 0], plain[:, :, 0])  # position 0 is not turned
    torch.testing.assert_close(seen["q"].norm(dim=-1), plain.norm(dim=-1))
    assert not torch.allclose(seen["q"][:, :, 1:], plain[:, :, 1:])


def test_the_method_is_given_back_after_an_error():
    module = FAMILIES["gptj"].built().h[0].attn
    with pytest.raises(ZeroDivisionError), observe_projections([module], lambda *_: None):
        assert "_attn" in vars(module)
        raise ZeroDivisionError
    assert "_attn" not in vars(module)


def test_other_modules_project_nothing():
    rwkv = FAMILIES["rwkv"].built().blocks[0].attention
    others = [nn.Linear(2, 2), nn.MultiheadAttention(4, 2), rwkv]
    with observe_projections(others, lambda *_: None):
        hooks = [each._forward_hooks for other in others for each in other.modules()]
        assert not any(hooks)
        assert not any("_attn" in vars(other) for other in others)

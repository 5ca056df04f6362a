"""Heads are noted during one pass and heard in the next."""

import torch
from families import FAMILIES, Family
from torch import nn

from isoscope.capture.attention import HeadTrace, hear_heads
from isoscope.capture.discover import CROSS
from isoscope.capture.stacks import Trace, find_stacks
from isoscope.capture.tap import Calls


def noted(name):
    family = FAMILIES[name]
    model = family.built()
    trace = Trace(model, find_stacks(model))
    heard = HeadTrace(trace)
    with heard.recording():
        trace.run(set(), lambda: model(**family.inputs()))
    return model, heard.heads()


def test_the_interface_is_believed_over_projections():
    _, heads = noted("bert")
    assert {head.way for head in heads.values()} == {"interface"}
    assert {head.way for head in noted("canine")[1].values()} == {"projection"}


def test_cross_attention_is_not_noted():
    _, heads = noted("bart")
    assert not any("encoder_attn" in head.module for head in heads.values())
    assert {site[:6] for site in heads if site.startswith("dec.q")} == {"dec.q."}
    assert len([site for site in heads if site.startswith("dec.k")]) == 8


def test_what_cross_attention_is_called():
    crossing = ("encoder_attn", "layer.1.EncDecAttention", "crossattention.self", "cross_attn")
    assert all(CROSS.search(name) for name in crossing)
    own = (
        "self_attn",
        "layer.0.SelfAttention",
        "attention.self",
        "attn",
        "encoder.layers.0.attn",
    )
    assert not any(CROSS.search(name) for name in own)


class Asking(nn.Module):
    """A block whose first attention looks at the other side."""

    def __init__(self):
        super().__init__()
        self.encoder_attn = LlamaLike()
        self.self_attn = LlamaLike()

    def forward(self, x):
        return self.self_attn(self.encoder_attn(x) + 1)


class LlamaLike(nn.Module):
    """Projections, and no attention to speak of."""

    num_heads = 2

    def __init__(self):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        return self.q_proj(x) + self.k_proj(x) + self.v_proj(x)


def test_self_attention_is_noted_though_cross_attention_comes_first():
    model = nn.ModuleDict({"cross_layers": nn.ModuleList([Asking(), Asking()])})
    trace = Trace(model, find_stacks(model))
    heard = HeadTrace(trace)
    with heard.recording():
        trace.run(
            set(), lambda: [block(torch.ones(1, 3, 4)) for block in model["cross_layers"]]
        )
    assert len(heard.heads()) == 12
    assert {h.module.split(".")[-1] for h in heard.heads().values()} == {"self_attn"}


def test_windows_are_no_heads_of_the_stream():
    settings = {"image_size": 32, "patch_size": 2, "embed_dim": 8, "window_size": 4}
    settings |= {"depths": [1, 1], "num_heads": [2, 2]}
    family = Family("swin", settings, takes="image")
    model = family.built()
    trace = Trace(model, find_stacks(model))
    heard = HeadTrace(trace)
    with heard.recording():
        trace.run(set(), lambda: model(**family.inputs()))
    assert heard.heads() == {}


def test_the_shared_attention_of_albert_is_distinguished_by_its_calls():
    _, heads = noted("albert")
    assert [heads[f"q.{layer}.0"].call for layer in range(3)] == [0, 1, 2]


def test_only_requested_heads_are_captured_as_views_without_copies():
    model, heads = noted("albert")
    said, calls = {}, Calls()
    wanted = [heads["k.1.3"], heads["v.2.0"]]
    with torch.no_grad(), hear_heads(model, wanted, said.__setitem__, calls):
        for _ in range(2):
            calls.restart()
            model(**FAMILIES["albert"].inputs())
    assert list(said) == ["k.1.3", "v.2.0"]
    assert said["k.1.3"].shape == (2, 6, 8)
    assert all(tensor._is_view() for tensor in said.values())


def test_models_without_attention_have_no_heads():
    assert noted("mamba")[1] == {}

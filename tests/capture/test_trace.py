"""A forward pass is written down: calls, their blocks, and copies of what passed."""

import torch
from torch import nn

from isoscope.capture.stacks import Trace, find_stacks


class Twice(nn.Module):
    """Two blocks that run twice, a norm after them that writes into its input."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(3, 3)) for _ in range(2)])
        self.norm = nn.LayerNorm(3)

    def forward(self, x):
        for block in (*self.blocks, *self.blocks):
            x = block(x)
        return self.norm(x).add_(x.zero_())


def traced():
    torch.manual_seed(0)
    model = Twice()
    trace = Trace(model, find_stacks(model))
    events = trace.run({"blocks.0.0", "norm"}, lambda: model(torch.ones(1, 2, 3)))
    return model, trace, events


def test_layers_are_numbered_in_the_order_in_which_blocks_run():
    _, _, events = traced()
    runs = [(e.place.layer, e.module, e.call) for e in events if e.module.count(".") == 1]
    assert runs == [
        (0, "blocks.0", 0),
        (1, "blocks.1", 0),
        (2, "blocks.0", 1),
        (3, "blocks.1", 1),
    ]


def test_a_module_belongs_to_the_run_of_its_block():
    _, trace, events = traced()
    parts = [(e.place.layer, e.place.block) for e in events if e.module == "blocks.0.0"]
    assert parts == [(0, "blocks.0"), (2, "blocks.0")]
    assert next(e for e in events if e.module == "norm").place is None
    assert trace.place("norm") is None


def test_what_passed_is_kept_though_the_model_writes_into_it():
    _, _, events = traced()
    norm = next(e for e in events if e.module == "norm")
    assert norm.received.abs().sum() > 0
    assert torch.equal(norm.received, events[-2].returned)


def test_no_hook_is_left():
    model, _, _ = traced()
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())

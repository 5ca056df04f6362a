"""Taps hear what modules say, change nothing, and let go."""

import pytest
import torch
from torch import nn

from isoscope.capture.tap import Tap, first_tensor, listening


class Pair(nn.Module):
    """Two blocks, the second run twice."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])

    def forward(self, x):
        for block in (self.blocks[0], self.blocks[1], self.blocks[1]):
            x = block(x)
        return x


TAPS = [Tap("embed", "blocks.0", "input"), Tap("resid.", "blocks.0"), Tap("resid.", "blocks.1")]


def heard(model, x, taps=TAPS):
    said = []
    with (
        torch.no_grad(),
        listening(model, taps, lambda site, t: said.append((site, t.clone()))),
    ):
        out = model(x)
    return out, said


def test_sites_are_numbered_in_the_order_in_which_blocks_run():
    _, said = heard(Pair(), torch.randn(2, 3))
    assert [site for site, _ in said] == ["embed", "resid.0", "resid.1", "resid.2"]


def test_a_new_pass_starts_the_numbers_again():
    model, sites = Pair(), []
    with torch.no_grad(), listening(model, TAPS, lambda site, _: sites.append(site)) as calls:
        for _ in range(2):
            calls.restart()
            model(torch.randn(2, 3))
    assert sites == ["embed", "resid.0", "resid.1", "resid.2"] * 2


def test_listening_changes_nothing():
    model, x = Pair(), torch.randn(2, 3)
    before = {name: p.clone() for name, p in model.named_parameters()}
    plain = model(x)
    out, said = heard(model, x)
    assert torch.equal(out, plain)
    assert torch.equal(said[-1][1], plain)
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())


def test_hooks_are_removed_however_the_block_ends():
    model = Pair()
    with pytest.raises(ZeroDivisionError), listening(model, TAPS, lambda *_: None):
        raise ZeroDivisionError
    for block in model.blocks:
        assert not block._forward_hooks
        assert not block._forward_pre_hooks


def test_what_a_module_gives_is_found_in_tuples_and_records():
    tensor = torch.ones(2)
    assert first_tensor((None, tensor)) is tensor
    assert first_tensor({"last": tensor}) is tensor
    assert first_tensor("text") is None

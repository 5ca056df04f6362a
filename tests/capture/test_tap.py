"""Taps hear what modules say, change nothing, and let go."""

import pytest
import torch
from torch import nn

from isoscope.capture.tap import (
    Calls,
    Tap,
    by_rows,
    first_tensor,
    input_tensor,
    listening,
    spatial,
)


class Pair(nn.Module):
    """Two blocks, the second run twice."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])

    def forward(self, x):
        for block in (self.blocks[0], self.blocks[1], self.blocks[1]):
            x = block(x)
        return x


TAPS = [
    Tap("embed", "blocks.0", "input"),
    Tap("resid.0", "blocks.0"),
    Tap("resid.1", "blocks.1", call=0),
    Tap("resid.2", "blocks.1", call=1),
]


def heard(model, x, taps=TAPS):
    said = []
    with (
        torch.no_grad(),
        listening(model, taps, lambda site, t: said.append((site, t.clone()))),
    ):
        out = model(x)
    return out, said


def test_a_block_that_runs_twice_is_captured_at_the_run_that_is_meant():
    _, said = heard(Pair(), torch.randn(2, 3))
    assert [site for site, _ in said] == ["embed", "resid.0", "resid.1", "resid.2"]


def test_a_new_pass_starts_the_count_of_calls_again():
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
    assert first_tensor((torch.arange(3), tensor)) is tensor


def test_hidden_states_may_be_given_by_name():
    tensor, other = torch.ones(2), torch.zeros(2)
    assert input_tensor((), {"mask": other, "hidden_states": tensor}) is tensor
    assert input_tensor((), {"x": tensor}) is tensor
    assert input_tensor((), {}) is None


def test_every_call_is_captured_where_none_is_meant():
    _, said = heard(Pair(), torch.randn(2, 3), [Tap("any", "blocks.1", call=None)])
    assert [site for site, _ in said] == ["any", "any"]


def test_a_tap_may_pass_what_it_hears_through_a_function():
    tap = Tap("twice", "blocks.0", through=lambda module, t: 2 * t + 0 * module.bias)
    x = torch.randn(2, 3)
    model = Pair()
    _, ((_, tensor),) = heard(model, x, [tap])
    assert torch.equal(tensor, 2 * model.blocks[0](x))


class Flat(nn.Module):
    """A block that works on all tokens in a row."""

    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(nn.Flatten(0, 1), nn.Linear(3, 4))

    def forward(self, x):
        return self.block(x)


def test_tokens_in_a_row_are_unfolded_to_the_batch():
    x = torch.randn(2, 5, 3)
    out, ((_, tensor),) = heard(Flat(), x, [Tap("mlp", "block.1", within="block")])
    assert torch.equal(tensor, out.reshape(2, 5, 4))


def test_what_is_not_in_a_row_is_left_as_it_is():
    tensor = torch.ones(2, 5, 3)
    assert Calls().unfold(tensor, None) is tensor


def test_a_map_becomes_one_row_per_position():
    image = torch.arange(24.0).reshape(1, 2, 3, 4)
    turned = spatial(nn.Identity(), image)
    assert turned.shape == (1, 12, 2)
    assert turned[0, 5].tolist() == image[0, :, 1, 1].tolist()
    assert turned.data_ptr() == image.data_ptr()
    assert by_rows(nn.Identity(), image).shape == (1, 12, 2)
    assert by_rows(nn.Identity(), turned) is turned
    assert by_rows(nn.Identity(), torch.ones(5, 2)).shape == (5, 1, 2)

"""Passes of a module: told however it is called, and nothing stays behind."""

import inspect

import pytest
import torch
from torch import nn

from isoscope.control.trainer.forward import told


def test_both_ways_to_call_a_module_are_told():
    net, said = nn.Linear(3, 2), []
    rows = torch.ones(1, 3)
    with told(
        net,
        before=lambda module, given, named: said.append(("before", len(given), dict(named))),
        after=lambda module, given, named, output: said.append(("after", tuple(output.shape))),
    ):
        net(rows)
        net.forward(input=rows)
        assert list(inspect.signature(net.forward).parameters) == ["input"]
    assert said[:2] == [("before", 1, {}), ("after", (1, 2))]
    assert said[2][1] == 0 and set(said[2][2]) == {"input"}
    net(rows)
    assert len(said) == 4 and "forward" not in vars(net)


def test_a_forward_of_ones_own_comes_back_after_an_error_too():
    net = nn.Linear(3, 2)
    own = net.forward = lambda rows: rows
    with pytest.raises(KeyError), told(net):
        raise KeyError
    assert net.forward is own


def test_what_is_asked_is_given_whatever_the_caller_said():
    class Says(nn.Module):
        def forward(self, **named):
            return named

    net = Says()
    with told(net, asked={"loud": True}):
        assert net(loud=None, low=1) == {"loud": True, "low": 1}
    assert net(loud=None) == {"loud": None}


def test_the_end_of_a_pass_is_told_whether_it_raised_or_not():
    net, said = nn.Linear(3, 2), []
    with told(net, ended=lambda: said.append("ended")):
        net(torch.ones(1, 3))
        with pytest.raises(RuntimeError):
            net(torch.ones(1, 7))
    assert said == ["ended", "ended"]


def test_blocks_on_one_module_end_in_any_order_and_within_a_pass():
    net, said, rows = nn.Linear(3, 2), [], torch.ones(1, 3)
    first = told(net, after=lambda *_: first.__exit__(None, None, None))
    first.__enter__()
    with told(net, after=lambda *_: said.append("second")):
        net(rows)
        net(rows)
    assert said == ["second", "second"] and "forward" not in vars(net)

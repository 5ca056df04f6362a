"""Passes of a module: told however it is called, and nothing stays behind."""

import inspect

import pytest
import torch
from torch import nn

from isoscope.control.forward import told


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

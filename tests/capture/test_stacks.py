"""Blocks are found from the module tree of many families, built small with random weights."""

import pytest
import torch
from families import FAMILIES
from torch import nn
from transformers import AutoConfig, AutoModel

from isoscope.capture.stacks import candidates, find_stacks, no_blocks
from isoscope.errors import SourceError
from isoscope.site import prefix_of


def built(kind, **settings):
    with torch.device("meta"):  # shapes only
        return AutoModel.from_config(AutoConfig.for_model(kind, **settings))


def stacks_of(name):
    return find_stacks(built(FAMILIES[name].kind, **FAMILIES[name].settings))


@pytest.mark.parametrize("name", [n for n in FAMILIES if n != "albert"])
def test_stacks_have_as_many_blocks_as_the_model(name):
    family, found = FAMILIES[name], stacks_of(name)
    assert tuple(prefix_of(stack.name) for stack in found) == family.prefixes
    assert tuple(stack.path for stack in found) == family.blocks
    assert tuple(len(stack.blocks) for stack in found) == family.layers
    assert [stack.spatial for stack in found] == [bool(family.widths)] * len(found)


def test_albert_runs_one_block_again_and_again():
    (stack,) = stacks_of("albert")
    assert stack.blocks == ("encoder.albert_layer_groups.0.albert_layers.0",)


def test_stages_of_a_convolutional_network_are_spatial():
    (stack,) = find_stacks(built("convnext", hidden_sizes=[8, 16, 32, 64], depths=[1, 1, 2, 1]))
    assert stack.spatial
    assert len(stack.blocks) == 4


def test_a_model_without_blocks_is_reported_what_it_has():
    model = nn.Sequential(nn.Linear(2, 2))
    assert candidates(model) == []
    with pytest.raises(
        SourceError, match="expected a list of blocks in Sequential, got none"
    ) as e:
        find_stacks(model)
    assert "0 (Linear)" in e.value.hint


def test_lists_that_never_ran_are_named():
    error = no_blocks(nn.ModuleDict({"parts": nn.ModuleList([nn.ReLU(), nn.ReLU()])}))
    assert "got lists that are never called as such: parts" in error.problem


def test_convolutions_before_the_blocks_are_not_the_blocks():
    settings = {**FAMILIES["wav2vec2-large"].settings, "conv_dim": (256, 256)}
    (stack,) = find_stacks(built("wav2vec2", **settings))
    assert stack.path == "encoder.layers"

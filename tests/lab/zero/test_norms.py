"""A zeroed norm dimension, against parameters that are zero."""

import copy

import pytest
import torch

from isoscope.errors import ConfigError, UndefinedError, UnknownNameError
from isoscope.lab.zero.worker import find_norms, zero_dimension
from isoscope.study.model import subject_of

IDS = torch.arange(4, 12)[None]


def hooks(model):
    return sum(len(module._forward_hooks) for module in model.modules())


@pytest.mark.parametrize("names", [["ln_f"], ["h.1.ln_1", "h.2.ln_2", "ln_f"]])
def test_it_is_the_model_with_gain_and_bias_zero(speaking, names):
    body = speaking.loaded.body
    changed = copy.deepcopy(body)
    for name in names:
        with torch.no_grad():
            changed.get_submodule(name).weight[7] = 0
            changed.get_submodule(name).bias[7] = 0
    with torch.inference_mode():
        plain = body(IDS).last_hidden_state
        with zero_dimension(body, names, 7):
            found = body(IDS).last_hidden_state
        assert torch.equal(found, changed(IDS).last_hidden_state)
        assert not torch.equal(found, plain)
        assert torch.equal(body(IDS).last_hidden_state, plain)
    assert hooks(body) == 0


def test_gemmas_gain_of_one_plus_w_is_zeroed_too(gemma):
    body = subject_of(gemma).loaded.body
    changed = copy.deepcopy(body)
    with torch.no_grad():
        changed.norm.weight[3] = -1.0
    with torch.inference_mode(), zero_dimension(body, ["norm"], 3):
        assert torch.equal(body(IDS).last_hidden_state, changed(IDS).last_hidden_state)


def test_hooks_are_gone_however_the_block_ends(speaking):
    body = speaking.loaded.body
    before = {name: tensor.clone() for name, tensor in body.state_dict().items()}
    with pytest.raises(KeyboardInterrupt), zero_dimension(body, ["ln_f"], 0):
        raise KeyboardInterrupt
    with pytest.raises(AttributeError), zero_dimension(body, ["ln_f", "no_such"], 0):
        pass
    assert hooks(body) == 0
    assert all(torch.equal(before[name], each) for name, each in body.state_dict().items())


def test_norms_are_chosen_by_place_number_or_name(speaking, tiny):
    assert find_norms(speaking, ["final"]) == ["ln_f"]
    assert find_norms(speaking, ["2"]) == ["h.1.ln_1", "h.1.ln_2", "h.2.ln_1", "h.2.ln_2"]
    assert find_norms(speaking, ["h.0.ln_1"]) == ["h.0.ln_1"]
    assert find_norms(speaking, ["ln_f", "h.0.ln_2"]) == ["ln_f", "h.0.ln_2"]
    assert find_norms(subject_of(tiny), ["final"]) == ["encoder.layer.2.output.LayerNorm"]


def test_norms_that_are_not_there_are_refused(speaking, normless):
    with pytest.raises(UnknownNameError, match="no norm is called 'ln_g'") as raised:
        find_norms(speaking, ["ln_g"])
    assert raised.value.slug == "unknown-norm"
    with pytest.raises(ConfigError, match="expected 1 to 3 blocks, got 4"):
        find_norms(speaking, ["4"])
    with pytest.raises(UndefinedError, match="a norm after the last block"):
        find_norms(subject_of(normless), ["final"])

"""Norm parameters beyond three sigma."""

import numpy as np
import pytest
import torch

from isoscope.errors import UndefinedError
from isoscope.lab.norm.parameters import outlier_dimensions, role_outliers
from isoscope.study.model import subject_of


def test_outlying_is_farther_than_three_sigmas_from_the_mean():
    values = np.random.default_rng(0).normal(5, 0.1, 200)
    values[[7, 90]] = [9.0, 2.0]
    expected = [i for i, v in enumerate(values) if abs(v - values.mean()) > 3 * values.std()]
    assert outlier_dimensions(values) == expected
    assert {7, 90} <= set(expected)
    assert outlier_dimensions(np.ones(10)) == []
    assert outlier_dimensions(None) == []


def plant(norm, dimension, gain=None, bias=None):
    with torch.no_grad():
        torch.nn.init.normal_(norm.weight, 1.0, 0.02)
        torch.nn.init.normal_(norm.bias, 0.0, 0.02)
        if gain is not None:
            norm.weight[dimension] = gain
        if bias is not None:
            norm.bias[dimension] = bias


def test_dimensions_that_stand_out_in_most_layers_are_common(tiny):
    subject = subject_of(tiny)
    torch.manual_seed(0)
    for number, layer in enumerate(subject.loaded.body.encoder.layer):
        plant(layer.output.LayerNorm, 5, gain=4.0, bias=-2.0 if number else None)
        plant(layer.attention.output.LayerNorm, 11, gain=3.0 if number == 1 else None)
    found = {each.role: each for each in role_outliers(subject)}
    assert set(found) == {"output.LayerNorm", "attention.output.LayerNorm"}
    output = found["output.LayerNorm"]
    assert (output.layers, output.width) == (3, 24)
    assert output.common_gain == {5: 3}
    assert output.common_bias == {5: 2}
    assert output.common_both == [5]
    attention = found["attention.output.LayerNorm"]
    assert attention.common_gain == {}
    assert attention.norms[1].gain == [11]
    assert attention.norms[1].module == "encoder.layer.1.attention.output.LayerNorm"


def test_a_norm_without_bias_has_no_outlying_bias(gemma):
    found = role_outliers(subject_of(gemma))
    assert {each.role for each in found} == {"input_layernorm", "post_attention_layernorm"}
    assert all(norm.bias == [] for each in found for norm in each.norms)


def test_a_model_without_norms_says_so(normless):
    with pytest.raises(UndefinedError, match="expected norms in the blocks") as raised:
        role_outliers(subject_of(normless))
    assert raised.value.slug == "no-norms"


@pytest.mark.real
def test_minilm_and_rxnfp_have_the_same_few_in_most_layers(minilm, shared_models):
    ours = {each.role: each for each in role_outliers(subject_of(minilm))}
    assert ours["attention.output.LayerNorm"].common_gain == {99: 5, 223: 4}
    assert ours["attention.output.LayerNorm"].common_both == [223]
    folder = shared_models / "rxnfp_bert_pretrained_fp16"
    theirs = {each.role: each for each in role_outliers(subject_of(folder))}
    assert theirs["attention.output.LayerNorm"].common_gain == {213: 11, 4: 9, 118: 7}

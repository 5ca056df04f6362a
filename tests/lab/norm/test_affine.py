"""Gain and bias as a norm applies them."""

import numpy as np
import pytest
import torch
from torch import nn
from transformers.models.gemma.modeling_gemma import GemmaRMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from isoscope.lab.norm.parameters import affine_of


def drawn(norm, seed=0):
    torch.manual_seed(seed)
    for parameter in norm.parameters():
        nn.init.normal_(parameter, 0.4, 0.3)
    return norm


def test_a_layer_norm_has_its_weight_and_bias():
    norm = drawn(nn.LayerNorm(16))
    found = affine_of(norm, 16)
    assert found.centred
    np.testing.assert_array_equal(found.gain, norm.weight.detach().double().numpy())
    np.testing.assert_array_equal(found.bias, norm.bias.detach().double().numpy())


@pytest.mark.parametrize(("kind", "more"), [(LlamaRMSNorm, 0.0), (GemmaRMSNorm, 1.0)])
def test_an_rms_norm_has_no_bias_and_gemma_adds_one_to_its_gain(kind, more):
    norm = drawn(kind(16))
    found = affine_of(norm, 16)
    assert not found.centred
    assert found.bias is None
    np.testing.assert_allclose(found.gain, norm.weight.detach().double().numpy() + more)


def test_a_norm_without_parameters_has_a_gain_of_one():
    found = affine_of(nn.LayerNorm(16, elementwise_affine=False), 16)
    assert found.gain.tolist() == [1.0] * 16
    assert found.bias is None


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_distinguished_too(dtype):
    norm = drawn(nn.LayerNorm(64)).to(dtype)
    found = affine_of(norm, 64)
    assert found.centred
    np.testing.assert_array_equal(found.gain, norm.weight.detach().double().numpy())


class Squashed(nn.Module):
    def forward(self, rows):
        return torch.tanh(rows)


class Conditioned(nn.Module):
    def forward(self, rows, condition):
        return rows * condition


@pytest.mark.parametrize("module", [Squashed(), Conditioned(), nn.LayerNorm(8), nn.GELU()])
def test_what_no_gain_and_bias_explain_is_none(module):
    assert affine_of(module, 16) is None

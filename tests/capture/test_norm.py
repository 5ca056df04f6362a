"""Norms are told from other modules, and known before gain and bias."""

import pytest
import torch
from torch import nn
from transformers.models.gemma3.modeling_gemma3 import Gemma3RMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm
from transformers.models.mobilebert.modeling_mobilebert import NoNorm
from transformers.models.t5.modeling_t5 import T5LayerNorm

from isoscope.capture.norm import fit_norm, is_norm, normalise


def with_gain(norm):
    torch.manual_seed(1)
    for parameter in norm.parameters():
        nn.init.normal_(parameter)
    return norm


ROWS = torch.randn(4, 16, generator=torch.Generator().manual_seed(0)) * 3 + 1
NORMS = [
    (nn.LayerNorm(16), True),
    (nn.LayerNorm(16, bias=False), True),
    (nn.LayerNorm(16, elementwise_affine=False), True),
    (nn.RMSNorm(16), False),
    (LlamaRMSNorm(16), False),
    (T5LayerNorm(16), False),
    (Gemma3RMSNorm(16), False),
]


@pytest.mark.parametrize(("norm", "centred"), NORMS, ids=lambda n: type(n).__name__)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_whether_a_norm_centres_is_reported_by_its_output(norm, centred, dtype):
    norm = with_gain(norm).to(dtype)
    given = ROWS.to(dtype)
    assert fit_norm(norm, given, norm(given)).centred is centred
    norm.to(torch.float32)


def test_what_no_gain_explains_has_no_middle():
    norm = with_gain(NoNorm(16))
    assert fit_norm(norm, ROWS, norm(ROWS)) is None


def test_normalised_is_the_norm_without_gain_and_bias():
    norm = with_gain(nn.LayerNorm(16))
    expected = (norm(ROWS) - norm.bias) / norm.weight
    torch.testing.assert_close(normalise(norm, ROWS), expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(normalise(nn.RMSNorm(16, eps=1e-6), ROWS), scaled(ROWS))


def scaled(rows):
    return rows / (rows.square().mean(dim=-1, keepdim=True) + 1e-6).sqrt()


def test_it_is_computed_in_float32_at_least():
    norm = nn.LayerNorm(16)
    assert normalise(norm, ROWS.bfloat16()).dtype == torch.float32
    assert normalise(norm, ROWS.double()).dtype == torch.float64


def test_only_norms_of_rows_are_norms():
    assert all(is_norm(norm) for norm, _ in NORMS)
    others = (
        nn.BatchNorm2d(4),
        nn.GroupNorm(2, 4),
        nn.Linear(2, 2),
        nn.Sequential(nn.LayerNorm(2)),
    )
    assert not any(is_norm(other) for other in others)

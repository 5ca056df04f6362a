"""The plan finds the norm a stack ends with, inside its last block or after it."""

import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModel

from isoscope.capture.plan import normalised, planned
from isoscope.capture.tap import listening

SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "vocab_size": 99,
}
TOKENS = torch.arange(1, 11).reshape(2, 5)
ALL = frozenset({"embed", "resid", "norm"})


def model_and_plan(kind, **settings):
    torch.manual_seed(0)
    settings = {"pad_token_id": 0, **SMALL, **settings}
    model = AutoModel.from_config(AutoConfig.for_model(kind, **settings)).eval()
    return model, planned(model, lambda: model(input_ids=TOKENS))


@pytest.mark.parametrize(
    ("kind", "norm", "inside"),
    [
        ("bert", "encoder.layer.2.output.LayerNorm", True),
        ("llama", "norm", False),
        ("gpt_neox", "final_layer_norm", False),
    ],
)
def test_the_final_norm_is_found(kind, norm, inside):
    _, plan = model_and_plan(kind)
    assert (plan.norms[""].module, plan.norms[""].inside) == (norm, inside)


def test_sites_and_their_tensors_are_those_of_the_model():
    model, plan = model_and_plan("llama")
    heard = {}
    with torch.no_grad(), listening(model, plan.taps(ALL), heard.__setitem__):
        output = model(input_ids=TOKENS, output_hidden_states=True)
    assert list(heard) == ["embed", "resid.0", "resid.1", "resid.2", "norm.in", "norm.out"]
    assert torch.equal(heard["norm.in"], heard["resid.2"])
    assert torch.equal(heard["norm.out"], output.last_hidden_state)
    assert torch.equal(heard["embed"], model.embed_tokens(TOKENS))


def test_in_post_norm_models_the_last_block_ends_with_the_norm():
    model, plan = model_and_plan("bert")
    heard = {}
    with torch.no_grad(), listening(model, plan.taps(ALL), heard.__setitem__):
        output = model(input_ids=TOKENS)
    assert torch.equal(heard["norm.out"], heard["resid.2"])
    assert torch.equal(heard["resid.2"], output.last_hidden_state)


def test_albert_numbers_its_one_block_by_call():
    model, plan = model_and_plan("albert", embedding_size=16)
    heard = {}
    with torch.no_grad(), listening(model, plan.taps(ALL), heard.__setitem__):
        model(input_ids=TOKENS)
    assert [site for site in heard if site.startswith("resid")] == [
        "resid.0",
        "resid.1",
        "resid.2",
    ]


def test_normalised_is_the_norm_without_gain_and_bias():
    x = torch.randn(4, 16) * 3 + 1
    norm = nn.LayerNorm(16)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    expected = (norm(x) - norm.bias) / norm.weight
    torch.testing.assert_close(normalised(norm, x), expected, rtol=1e-4, atol=1e-5)
    plain = nn.RMSNorm(16, eps=1e-6)
    torch.testing.assert_close(normalised(plain, x), plain(x), rtol=1e-4, atol=1e-5)

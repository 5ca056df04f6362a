"""Blocks are found from the module tree of many families, built small with random weights."""

import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModel

from isoscope.capture.tree import candidates, stacks
from isoscope.errors import SourceError

SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
GPT = {"n_embd": 32, "n_layer": 3, "n_head": 4}
FAMILIES = {
    "bert": SMALL,
    "roberta": SMALL,
    "distilbert": {"dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 64},
    "deberta-v2": SMALL,
    "electra": SMALL,
    "gpt2": GPT,
    "gpt_neox": SMALL,
    "gptj": {**GPT, "rotary_dim": 4},
    "llama": SMALL,
    "mistral": {**SMALL, "num_key_value_heads": 2},
    "qwen3": {**SMALL, "num_key_value_heads": 2},
    "opt": {**SMALL, "ffn_dim": 64, "word_embed_proj_dim": 32},
    "falcon": SMALL,
    "bloom": {"hidden_size": 32, "n_layer": 3, "n_head": 4},
    "vit": SMALL,
    "beit": SMALL,
    "dinov2": SMALL,
    "wav2vec2": SMALL,
    "hubert": SMALL,
    "mamba": {"hidden_size": 32, "num_hidden_layers": 3},
    "canine": SMALL,
}


def built(kind, **settings):
    with torch.device("meta"):  # shapes only
        return AutoModel.from_config(AutoConfig.for_model(kind, **settings))


@pytest.mark.parametrize("kind", FAMILIES)
def test_a_stack_has_as_many_blocks_as_the_model(kind):
    (stack,) = stacks(built(kind, **FAMILIES[kind]))
    assert len(stack.blocks) == 3
    assert stack.prefix == ""
    assert not stack.spatial


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (
            "t5",
            {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 3, "num_decoder_layers": 2},
        ),
        ("bart", {"d_model": 32, "encoder_layers": 3, "decoder_layers": 2}),
        ("whisper", {"d_model": 24, "encoder_layers": 3, "decoder_layers": 2}),
    ],
)
def test_an_encoder_decoder_has_two_stacks(kind, settings):
    encoder, decoder = stacks(built(kind, **settings))
    assert (encoder.prefix, len(encoder.blocks)) == ("enc.", 3)
    assert (decoder.prefix, len(decoder.blocks)) == ("dec.", 2)


def test_albert_runs_one_block_again_and_again():
    (stack,) = stacks(built("albert", **SMALL, embedding_size=16))
    assert stack.blocks == ("encoder.albert_layer_groups.0.albert_layers.0",)


def test_stages_of_a_convolutional_network_are_spatial():
    (stack,) = stacks(built("convnext", hidden_sizes=[8, 16, 32, 64], depths=[1, 1, 2, 1]))
    assert stack.spatial
    assert len(stack.blocks) == 4


def test_a_model_without_blocks_is_told_what_it_has():
    model = nn.Sequential(nn.Linear(2, 2))
    assert candidates(model) == []
    with pytest.raises(
        SourceError, match="expected a list of blocks in Sequential, got none"
    ) as e:
        stacks(model)
    assert "0 (Linear)" in e.value.hint

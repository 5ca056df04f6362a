"""The body runs the blocks and nothing else."""

import pytest
import torch
import transformers
from torch import nn

from isoscope.capture.model.load import load
from isoscope.capture.model.network import body_of, takes

INPUTS = {
    "bert": {"input_ids": torch.arange(1, 9)[None]},
    "gpt2": {"input_ids": torch.arange(1, 9)[None]},
    "t5": {"input_ids": torch.arange(1, 9)[None], "decoder_input_ids": torch.arange(4)[None]},
    "vit": {"pixel_values": torch.linspace(-1, 1, 768).reshape(1, 3, 16, 16)},
    "wav2vec2": {"input_values": torch.linspace(-1, 1, 4000)[None]},
    "whisper": {
        "input_features": torch.linspace(-1, 1, 512).reshape(1, 8, 64),
        "decoder_input_ids": torch.arange(1, 5)[None],
    },
}
SENSES = {"vit": "image", "wav2vec2": "audio", "whisper": "audio"}


@pytest.mark.parametrize("kind", INPUTS)
def test_the_body_runs_the_blocks_of_the_model_and_no_head(tiny, kind):
    loaded = load(tiny(kind))
    assert loaded.takes == SENSES.get(kind, "text")
    modules = set(loaded.model.modules())
    head = {m for m in modules - set(loaded.body.modules()) if isinstance(m, nn.Linear)}
    assert head, "each of these classes has a head"
    heard = []
    for module in modules:
        module.register_forward_hook(lambda m, _, __: heard.append(m))
    with torch.no_grad():
        loaded.body(**INPUTS[kind])
    blocks = {m for m in modules if type(m).__name__.endswith(("Block", "Layer"))}
    assert blocks & set(heard)
    assert not head & set(heard)


def test_the_body_of_t5_gives_what_its_model_with_a_head_gives(tiny):
    loaded = load(tiny("t5"))
    assert type(loaded.body) is transformers.T5Model
    assert loaded.body is not loaded.model
    with torch.no_grad():
        states = loaded.body(**INPUTS["t5"]).last_hidden_state
        whole = loaded.model(**INPUTS["t5"], output_hidden_states=True)
    assert torch.equal(states, whole.decoder_hidden_states[-1])
    ours = {id(p) for p in loaded.model.parameters()}
    assert {id(p) for p in loaded.body.parameters()} <= ours


def test_a_headless_model_is_its_own_body(tiny):
    loaded = load(tiny("bert-body"))
    assert loaded.body is loaded.model


def test_a_plain_module_is_its_own_body_and_takes_text():
    module = nn.Linear(2, 2)
    assert body_of(module) is module
    assert takes(module) == "text"

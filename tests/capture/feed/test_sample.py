"""Sample inputs run through every family."""

import pytest
import torch

from isoscope.capture.feed.choose import sample_inputs

MODELS = {
    "bert": lambda zoo: zoo.text_model("bert"),
    "roberta": lambda zoo: zoo.text_model(
        "roberta", max_position_embeddings=10, pad_token_id=1
    ),
    "fnet": lambda zoo: zoo.text_model("fnet"),
    "mamba": lambda zoo: zoo.text_model("mamba", state_size=4),
    "canine": lambda zoo: zoo.canine_model(),
    "t5": lambda zoo: zoo.pair_model("t5"),
    "bart": lambda zoo: zoo.pair_model("bart"),
    "wav2vec2": lambda zoo: zoo.wave_model("wav2vec2", "group"),
    "hubert": lambda zoo: zoo.wave_model("hubert", "layer"),
    "whisper": lambda zoo: zoo.whisper_model(),
}
VISION = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
IMAGES = {
    "vit": {**VISION, "image_size": (32, 48), "patch_size": 16},
    "dinov2": {**VISION, "image_size": 28},
    "convnext": {"hidden_sizes": [8, 8, 8, 8], "depths": [1, 1, 1, 1]},
    "resnet": {"hidden_sizes": [8, 8, 8, 8], "depths": [1, 1, 1, 1], "num_channels": 1},
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_forward_pass_runs_on_them(zoo, kind):
    loaded = MODELS[kind](zoo)
    inputs = sample_inputs(loaded)
    with torch.no_grad():
        states = loaded.body(**inputs).last_hidden_state
    assert states.isfinite().all() and states.shape[1] >= 4


@pytest.mark.parametrize("kind", IMAGES)
def test_images_have_the_size_of_the_model(zoo, kind):
    body = zoo.built(kind, **IMAGES[kind])
    inputs = sample_inputs(zoo.Loaded(body, body, "image"))
    with torch.no_grad():
        assert body(**inputs).last_hidden_state.isfinite().all()


def test_inputs_have_the_type_of_the_weights(zoo):
    loaded = zoo.wave_model("wav2vec2", "layer")
    loaded.body.to(torch.bfloat16)
    assert sample_inputs(loaded)["input_values"].dtype == torch.bfloat16
    text = zoo.text_model("bert")
    text.body.to(torch.bfloat16)
    assert sample_inputs(text)["input_ids"].dtype == torch.int64


def test_they_are_the_same_every_time(zoo):
    one, two = (sample_inputs(zoo.wave_model("wav2vec2", "layer")) for _ in range(2))
    assert torch.equal(one["input_values"], two["input_values"])

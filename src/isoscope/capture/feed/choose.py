"""The feed that fits a model, and small inputs to try a model with."""

import torch
from torch import Tensor

from isoscope.capture.feed.base import Feed, config_of, parameters, placement
from isoscope.capture.feed.image import ImageFeed
from isoscope.capture.feed.sound import WaveFeed, WhisperFeed
from isoscope.capture.feed.text import (
    CharacterFeed,
    PairFeed,
    TextFeed,
    start_token,
    trial_inputs,
)
from isoscope.capture.model.load import Loaded
from isoscope.errors import ConfigError


def feed_for(
    loaded: Loaded, *, length: int = 512, prompt: str | None = None, bos: bool = True
) -> Feed:
    """Return what turns documents into batches for this model.

    The length is in tokens and bounds text and transcripts; sound is cut to 30 seconds,
    images are seen whole. The prompt is put in front of every text; the name of one of the
    model's own prompts stands for its words. Without `bos`, the token that the tokenizer
    puts at the beginning of texts is dropped.
    """
    if loaded.takes == "text":
        return _text_feed(loaded)(loaded, length=length, prompt=prompt, bos=bos)
    if prompt:
        raise ConfigError(
            f"cannot put a prompt in front of {loaded.takes}",
            hint="leave --prompt out; it is for models of text",
            slug="prompt-text",
        )
    return ImageFeed(loaded) if loaded.takes == "image" else _sound_feed(loaded, length)


def _text_feed(loaded: Loaded) -> type[TextFeed]:
    config = config_of(loaded.body)
    both = getattr(config, "is_encoder_decoder", False)
    if both and "decoder_input_ids" in parameters(loaded.body):
        return PairFeed
    rate = getattr(config, "downsampling_rate", None)
    return CharacterFeed if isinstance(rate, int) else TextFeed


def _sound_feed(loaded: Loaded, length: int) -> Feed:
    config = config_of(loaded.body)
    names = parameters(loaded.body)
    if "input_values" in names and hasattr(config, "conv_kernel"):
        return WaveFeed(loaded)
    if {"input_features", "decoder_input_ids"} <= names and hasattr(config, "num_mel_bins"):
        return WhisperFeed(loaded, length=length)
    raise ConfigError(
        f"cannot feed audio to {type(loaded.body).__name__}",
        hint="whisper, and models of the wav2vec2 kind (hubert, wavlm), can be fed",
        slug="audio-model",
    )


SECOND = 16_000  # samples
SIDE = 224  # pixels, where a model does not say


def sample_inputs(loaded: Loaded) -> dict[str, Tensor]:
    """Return inputs for `loaded.body(**inputs)`: a few tokens, a second of noise, an image."""
    made = {"text": trial_inputs, "audio": _noise, "image": _image}[loaded.takes](loaded)
    paired = getattr(config_of(loaded.body), "is_encoder_decoder", False)
    if paired and "decoder_input_ids" in parameters(loaded.body):
        made["decoder_input_ids"] = torch.tensor([[start_token(loaded)] * 4])
    device, dtype = placement(loaded.body)
    return {
        name: each.to(device, dtype) if each.is_floating_point() else each.to(device)
        for name, each in made.items()
    }


def _noise(loaded: Loaded) -> dict[str, Tensor]:
    config = config_of(loaded.body)
    seeded = torch.Generator().manual_seed(0)
    if getattr(config, "num_mel_bins", None) and hasattr(config, "max_source_positions"):
        shape = (1, config.num_mel_bins, 2 * config.max_source_positions)
        return {"input_features": torch.randn(shape, generator=seeded)}
    return {"input_values": torch.randn((1, SECOND), generator=seeded)}


def _image(loaded: Loaded) -> dict[str, Tensor]:
    config = config_of(loaded.body)
    size = getattr(config, "image_size", None) or SIDE
    height, width = (size, size) if isinstance(size, int) else size
    seeded = torch.Generator().manual_seed(0)
    shape = (1, getattr(config, "num_channels", 3), int(height), int(width))
    return {"pixel_values": torch.randn(shape, generator=seeded)}

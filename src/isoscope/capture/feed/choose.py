"""The feed that fits a model."""

from typing import Any

from isoscope.capture.feed.base import Feed, parameters
from isoscope.capture.feed.given import Loaded
from isoscope.capture.feed.image import ImageFeed
from isoscope.capture.feed.pair import PairFeed
from isoscope.capture.feed.sample import sample_inputs
from isoscope.capture.feed.text import CharacterFeed, TextFeed
from isoscope.capture.feed.wave import WaveFeed
from isoscope.capture.feed.whisper import WhisperFeed
from isoscope.errors import ConfigError

__all__ = ["Feed", "feed_for", "sample_inputs"]


def feed_for(loaded: Loaded, *, length: int = 512, prompt: str | None = None) -> Feed:
    """Return what turns documents into batches for this model.

    The length is in tokens and bounds text and transcripts; sound is heard for 30 seconds,
    images are seen whole. The prompt is put in front of every text; the name of one of the
    model's own prompts stands for its words.
    """
    if loaded.takes == "text":
        return _reading(loaded)(loaded, length=length, prompt=prompt)
    if prompt:
        raise ConfigError(
            f"cannot put a prompt in front of {loaded.takes}",
            hint="leave --prompt out; it is for models of text",
            slug="prompt-text",
        )
    return ImageFeed(loaded) if loaded.takes == "image" else _listening(loaded, length)


def _reading(loaded: Loaded) -> type[TextFeed]:
    config: Any = getattr(loaded.body, "config", None)
    both = getattr(config, "is_encoder_decoder", False)
    if both and "decoder_input_ids" in parameters(loaded.body):
        return PairFeed
    rate = getattr(config, "downsampling_rate", None)
    return CharacterFeed if isinstance(rate, int) else TextFeed


def _listening(loaded: Loaded, length: int) -> Feed:
    config: Any = getattr(loaded.body, "config", None)
    names = parameters(loaded.body)
    if "input_values" in names and hasattr(config, "conv_kernel"):
        return WaveFeed(loaded)
    if {"input_features", "decoder_input_ids"} <= names and hasattr(config, "num_mel_bins"):
        return WhisperFeed(loaded, length=length)
    raise ConfigError(
        f"cannot feed audio to {type(loaded.body).__name__}",
        hint="whisper, and models of the wav2vec2 kind (hubert, wavlm), can be listened to",
        slug="audio-model",
    )

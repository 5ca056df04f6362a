"""Small inputs for the one forward pass that shows where the sites of a model are."""

from typing import Any

import torch
from torch import Tensor

from isoscope.capture.feed.base import parameters, placement
from isoscope.capture.feed.given import Loaded
from isoscope.capture.feed.pair import start_token
from isoscope.capture.feed.text import trial_inputs

SECOND = 16_000  # samples
SIDE = 224  # pixels, where a model does not say


def sample_inputs(loaded: Loaded) -> dict[str, Tensor]:
    """Return inputs for `loaded.body(**inputs)`: a few tokens, a second of noise, an image."""
    made = {"text": trial_inputs, "audio": _noise, "image": _image}[loaded.takes](loaded)
    if "decoder_input_ids" in parameters(loaded.body) and _has_decoder(loaded):
        start = start_token(loaded)
        made["decoder_input_ids"] = torch.tensor([[start] * 4])
    device, dtype = placement(loaded.body)
    return {
        name: each.to(device, dtype) if each.is_floating_point() else each.to(device)
        for name, each in made.items()
    }


def _noise(loaded: Loaded) -> dict[str, Tensor]:
    config: Any = loaded.body.config
    seeded = torch.Generator().manual_seed(0)
    if getattr(config, "num_mel_bins", None) and hasattr(config, "max_source_positions"):
        shape = (1, config.num_mel_bins, 2 * config.max_source_positions)
        return {"input_features": torch.randn(shape, generator=seeded)}
    return {"input_values": torch.randn((1, SECOND), generator=seeded)}


def _image(loaded: Loaded) -> dict[str, Tensor]:
    config: Any = loaded.body.config
    size = getattr(config, "image_size", None) or SIDE
    height, width = (size, size) if isinstance(size, int) else size
    seeded = torch.Generator().manual_seed(0)
    shape = (1, getattr(config, "num_channels", 3), int(height), int(width))
    return {"pixel_values": torch.randn(shape, generator=seeded)}


def _has_decoder(loaded: Loaded) -> bool:
    return bool(getattr(getattr(loaded.body, "config", None), "is_encoder_decoder", False))

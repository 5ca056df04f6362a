"""What loading a model gives: the network, what it takes, and who it is."""

from dataclasses import dataclass
from typing import Any, Literal

from torch import nn

from isoscope.capture.model.pooling import Pooling

Takes = Literal["text", "audio", "image"]


@dataclass(frozen=True)
class Loaded:
    """A network in evaluation mode, with what its inputs need and its fingerprints."""

    model: nn.Module
    name: str
    takes: Takes
    tokenizer: Any | None  # None where there is none; token files still work
    processor: Any | None  # of audio or images
    identity: dict[str, Any]  # plain values only
    pooling: Pooling | None  # of a sentence-transformers folder
    body: nn.Module  # runs the blocks, without logits over the vocabulary

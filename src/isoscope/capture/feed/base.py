"""What every feed promises: prepare one document, batch several."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from isoscope.capture.feed.batch import Batch, Prepared
from isoscope.capture.feed.given import Given
from isoscope.errors import ConfigError


class Feed(ABC):
    """Documents in, batches out.

    Prepare documents outside of `listening`: a feed may run the model to write what the
    decoder is to read, and taps would hear it.
    """

    mixes_lengths: bool = True  # whether padding leaves the real positions as they are
    prompted: int = 0  # positions at the start of every text that are the prompt's

    def __init__(self, body: nn.Module) -> None:
        self.body = body
        self.device, self.dtype = placement(body)

    @abstractmethod
    def prepare(self, document: Given) -> Prepared | None:
        """Return the document made ready, or None if it is too short to measure."""

    def batch(self, prepared: Sequence[Prepared]) -> Batch:
        """Return documents side by side, padded on the right, on the model's device."""
        if not prepared:
            raise ValueError("a batch needs at least one document")
        if not self.mixes_lengths and len({each.length for each in prepared}) > 1:
            raise ValueError("padding changes what this model says; batch equal lengths only")
        return self.joined(prepared)

    @abstractmethod
    def joined(self, prepared: Sequence[Prepared]) -> Batch:
        """Return the batch of documents that may stand side by side."""


def placement(body: nn.Module) -> tuple[torch.device, torch.dtype]:
    """Return the device inputs go to, and the type that real-valued ones have."""
    for parameter in body.parameters():
        if parameter.is_floating_point():
            return parameter.device, parameter.dtype
    return torch.device("cpu"), torch.float32


def parameters(body: nn.Module) -> frozenset[str]:
    """Return the names of the arguments a model is called with."""
    return frozenset(inspect.signature(body.forward).parameters)


def wrong_kind(document: Given, wanted: str) -> ConfigError:
    """Return the error for a document of a kind that the model does not take."""
    return ConfigError(
        f"expected {wanted}, got {_kind(document.content)}{_where(document)}",
        hint="give a corpus of the kind this model reads: text or tokens, audio, or images",
        slug="corpus-kind",
    )


def _kind(content: Any) -> str:
    if isinstance(content, str):
        return "text"
    shape = getattr(content, "shape", None)
    if shape is None:
        return type(content).__name__
    kind = getattr(content.dtype, "kind", "")
    if len(shape) == 3:
        return f"an image of shape {tuple(shape)}"
    if len(shape) == 1 and kind in "iu":
        return "token ids"
    return "audio" if len(shape) == 1 and kind == "f" else f"an array of shape {tuple(shape)}"


def _where(document: Given) -> str:
    place = f" ({document.place})" if document.place else ""
    return f" in document {document.id!r}{place}"


def missing_processor(wanted: str) -> ConfigError:
    """Return the error for a model folder that does not say how inputs are made."""
    return ConfigError(
        f"expected a preprocessor_config.json that says how {wanted} is read, got none",
        hint="put the file of the original model into the model's folder",
        slug="processor-missing",
    )

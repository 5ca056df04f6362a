"""What every feed does: prepare one document, batch several."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from isoscope.capture.feed.marks import Marks, PositionLayout
from isoscope.errors import ConfigError
from isoscope.types import Array, Document

NO_SETTINGS: Any = SimpleNamespace()


class ModelConfig(Protocol):
    """Settings of models that feeds read; each model has some of them."""

    conv_kernel: Sequence[int]
    conv_stride: Sequence[int]
    decoder_start_token_id: int
    downsampling_rate: int
    eos_token_id: int | list[int]
    max_source_positions: int
    max_target_positions: int
    num_mel_bins: int
    pad_token_id: int | None
    vocab_size: int


@dataclass(frozen=True)
class Prepared:
    """One document, ready to be batched."""

    id: str
    inputs: dict[str, Array]  # unpadded, without the batch axis
    length: int  # positions that count in the main stack; batches are sorted by it
    cost: int  # padded positions it will occupy
    truncated: bool
    special: dict[str, Array] = field(default_factory=dict[str, Array])  # by stack


@dataclass(frozen=True)
class Batch:
    """Documents side by side, as the model takes them."""

    inputs: dict[str, Tensor]
    documents: tuple[str, ...]
    layouts: Mapping[str, PositionLayout]  # by stack

    def marks(self, stack: str, length: int) -> Marks:
        """Return the marks of a tensor of a stack: "", "enc" or "dec"."""
        if stack not in self.layouts:
            known = ", ".join(repr(each) for each in self.layouts)
            raise ValueError(f"no stack is called {stack!r}; this batch feeds {known}")
        return self.layouts[stack](length)


class Feed(ABC):
    """Documents in, batches out.

    Prepare documents outside of `listening`: a feed may run the model to write what the
    decoder is to read, and taps would report it.
    """

    mixes_lengths: bool = True  # whether padding leaves the real positions as they are
    prompt_length: int = 0  # positions at the start of every text that are the prompt's

    def __init__(self, body: nn.Module) -> None:
        self.body = body
        self.device, self.dtype = placement(body)

    @abstractmethod
    def prepare(self, document: Document) -> Prepared | None:
        """Return the document made ready, or None if it is too short to measure."""

    def batch(self, prepared: Sequence[Prepared]) -> Batch:
        """Return documents side by side, padded on the right, on the model's device."""
        if not prepared:
            raise ValueError("a batch needs at least one document")
        if not self.mixes_lengths and len({each.length for each in prepared}) > 1:
            raise ValueError(
                "padding changes the output of this model; batch equal lengths only"
            )
        return self.collate(prepared)

    @abstractmethod
    def collate(self, prepared: Sequence[Prepared]) -> Batch:
        """Return the batch of documents that may stand side by side."""


def config_of(body: nn.Module) -> ModelConfig:
    """Return the settings of a model; modules that are not of transformers have none."""
    return getattr(body, "config", NO_SETTINGS)


def placement(body: nn.Module) -> tuple[torch.device, torch.dtype]:
    """Return the device inputs go to, and the type that real-valued ones have."""
    default = torch.empty(0, device="cpu", dtype=torch.float32)
    real = next((each for each in body.parameters() if each.is_floating_point()), default)
    return real.device, real.dtype


def parameters(body: nn.Module) -> frozenset[str]:
    """Return the names of the arguments a model is called with."""
    return frozenset(inspect.signature(body.forward).parameters)


def wrong_kind(document: Document, expected: str) -> ConfigError:
    """Return the error for a document of a kind that the model does not take."""
    place = f" ({document.place})" if document.place else ""
    return ConfigError(
        f"expected {expected}, got {_kind(document.content)} in document {document.id!r}"
        f"{place}",
        hint="give a corpus of the kind this model reads: text or tokens, audio, or images",
        slug="corpus-kind",
    )


def _kind(content: object) -> str:
    if isinstance(content, str):
        return "text"
    if not isinstance(content, np.ndarray):
        return type(content).__name__
    shape, kind = content.shape, content.dtype.kind
    if len(shape) == 3:
        return f"an image of shape {tuple(shape)}"
    if len(shape) == 1 and kind in "iu":
        return "token ids"
    return "audio" if len(shape) == 1 and kind == "f" else f"an array of shape {tuple(shape)}"


def missing_processor(kind: str) -> ConfigError:
    """Return the error for a model folder that does not say how inputs are made."""
    return ConfigError(
        f"expected a preprocessor_config.json that says how {kind} is read, got none",
        hint="put the file of the original model into the model's folder",
        slug="processor-missing",
    )


def pad_rows(
    rows: Sequence[Array], *, fill: float = 0, multiple: int = 1, device: torch.device
) -> Tensor:
    """Return 1-D rows as one (B, longest) tensor; longest is rounded up to a multiple."""
    longest = -(-max(len(row) for row in rows) // multiple) * multiple
    table = np.full((len(rows), longest), fill, dtype=rows[0].dtype)
    for line, row in zip(table, rows, strict=True):
        line[: len(row)] = row
    return torch.from_numpy(table).to(device)

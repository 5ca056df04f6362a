"""What every feed does: prepare one document, batch several, mark the positions that count."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from isoscope.dataclass import dataclass
from isoscope.errors import ConfigError
from isoscope.types import Array, Document

NO_SETTINGS: Any = SimpleNamespace()
# Models with these settings pad their input on the right themselves, to whole windows.
WINDOWS = ("attention_window", "block_size")


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
class Marks:
    """Which positions of a tensor are of a document, and which of those are special."""

    real: Tensor  # (B, length) bool; never padding
    special: Tensor  # (B, length) bool; [CLS], </s>, register tokens, a decoder's prompt …
    tokens: Tensor | None  # (B, length) token ids, where positions are tokens


# The marks of a tensor by its number of positions: models shorten, lengthen and regroup them.
PositionLayout = Callable[[int], Marks]


def pads_to_windows(config: object) -> bool:
    """Whether a model lengthens its input (longformer, bigbird)."""
    return any(getattr(config, name, None) for name in WINDOWS)


def within(counts: Sequence[int], length: int, device: torch.device) -> Tensor:
    """Return the (B, length) mask of the first positions of each row."""
    ends = torch.tensor(list(counts), device=device)
    return torch.arange(length, device=device)[None, :] < ends[:, None]


@dataclass(frozen=True)
class TokenLayout:
    """A position is a token."""

    real: Tensor
    special: Tensor
    tokens: Tensor
    lengthened: bool = False  # by the model itself, with padding on the right

    def __call__(self, length: int) -> Marks:
        """Return the marks of a tensor of this length."""
        more = length - self.real.shape[1]
        if more == 0:
            return Marks(self.real, self.special, self.tokens)
        if more < 0 or not self.lengthened:
            raise unknown_positions(self.real.shape[1], length)
        return Marks(*(pad(each, (0, more)) for each in (self.real, self.special, self.tokens)))


def molecule_marks(characters: TokenLayout, rate: int, length: int) -> Marks:
    """Return the marks of characters, or of molecules of `rate` of them (canine).

    Molecule 0 is the first character, [CLS], once more; molecule j is made of characters
    (j-1)*rate to j*rate-1. The model attends to molecule j if block j of characters has a real
    one, and so they are counted: a document of t characters has ceil(t / rate) molecules, each
    made of real characters only. (The block after the last of them, cut or whole, gave way to
    [CLS].) A molecule is special if all its characters are.
    """
    padded = characters.real.shape[1]
    if length == padded:
        return characters(length)
    if length != padded // rate:
        raise unknown_positions(padded // rate, length)
    blocks = (len(characters.real), length, rate)
    real = characters.real.reshape(blocks).any(dim=2)  # (B, length)
    special = characters.special.reshape(blocks).all(dim=2)
    special = torch.cat([characters.special[:, :1], special[:, :-1]], dim=1)
    return Marks(real, special & real, None)


def frame_marks(counts: Sequence[int], total: int, device: torch.device, length: int) -> Marks:
    """Return the marks of frames of sound: those that reach past a clip's end do not count.

    `counts` are the frames of each clip, `total` those of the padded batch.
    """
    if length != total:
        raise unknown_positions(total, length)
    real = within(counts, length, device)
    return Marks(real, torch.zeros_like(real), None)


def patch_marks(images: int, patches: int | None, device: torch.device, length: int) -> Marks:
    """Return the marks of patches, or places of a map; tokens before patches are special.

    A stack with more positions than there are patches has put its own in front: [CLS],
    distillation and register tokens. Stages of convolutional and of hierarchical networks
    have as many or fewer, all of the image. `patches` is None where a model cuts none.
    """
    extra = 0 if patches is None else max(0, length - patches)
    special = within([extra] * images, length, device)
    return Marks(torch.ones_like(special), special, None)


def unknown_positions(expected: int, got: int) -> ConfigError:
    """Return the error for a tensor whose positions cannot be distinguished from padding."""
    return ConfigError(
        f"expected {expected} positions per document at a site, got {got}",
        hint="this model regroups positions in a way that is not known; exclude the site",
        slug="positions-unknown",
    )


@dataclass(frozen=True)
class Prepared:
    """One document, ready to be batched."""

    id: str
    inputs: dict[str, Array]  # unpadded, without the batch axis
    length: int  # positions that count in the main stack; batches are sorted by it
    cost: int  # padded positions it will occupy
    truncated: bool
    special: dict[str, Array] = field(default_factory=dict[str, Array])  # by stack
    key: int | None = None  # hash that identifies it; None: that of its id


@dataclass(frozen=True)
class Batch:
    """Documents side by side, as the model takes them."""

    inputs: dict[str, Tensor]
    documents: tuple[str, ...]
    layouts: Mapping[str, PositionLayout]  # by stack
    keys: tuple[int, ...] | None = None  # hashes that identify the documents; None: of ids

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
        batch = self.collate(prepared)
        keys = tuple(each.key for each in prepared if each.key is not None)
        return replace(batch, keys=keys) if len(keys) == len(prepared) else batch

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

"""Which rows of which layers a penalty looks at: real tokens only, within a budget."""

from collections.abc import Mapping, Sequence
from typing import Protocol, Self

import numpy as np
import torch
from torch import Tensor

from isoscope.control.processes import World
from isoscope.dataclass import dataclass
from isoscope.errors import PenaltyError
from isoscope.types import Array

Layers = str | int | Sequence[int]  # "all", "last", or which, from 0
Marks = Tensor | Array | Sequence[int] | Sequence[Sequence[int]]  # one number per token


class ModelOutput(Protocol):
    """What a model of transformers returns when called with output_hidden_states=True."""

    @property
    def hidden_states(self) -> Sequence[Tensor] | None:
        """The input of block 0, and the stream after every block."""


Hidden = Tensor | Sequence[Tensor] | ModelOutput | Mapping[str, Sequence[Tensor] | None]


def select_layers(hidden: Hidden, layers: Layers) -> list[Tensor]:
    """Return the chosen layers, each a tensor (batch, time, d) or (n, d).

    The first entry of a model's `hidden_states` is what goes into block 0 and no layer, so
    it is skipped; a list or tuple is taken as it is.
    """
    tensors = _tensors_of(hidden)
    chosen = [tensors[number] for number in layer_numbers(layers, len(tensors))]
    for each in chosen:
        if each.shape[:-1] != chosen[0].shape[:-1]:
            raise PenaltyError(
                f"expected layers of the same rows {tuple(chosen[0].shape[:-1])}, "
                f"got {tuple(each.shape[:-1])}",
                hint="give the hidden states of one batch, all of one stack of layers",
                slug="hidden-states-kind",
            )
    return chosen


def _tensors_of(hidden: Hidden) -> list[Tensor]:
    if isinstance(hidden, Tensor):
        return [_check_tensor(hidden)]
    if isinstance(hidden, Mapping):
        return _layers_of(hidden.get("hidden_states"), hidden)
    if hasattr(hidden, "hidden_states"):
        return _layers_of(getattr(hidden, "hidden_states"), hidden)  # noqa: B009 - narrows
    if isinstance(hidden, Sequence) and not isinstance(hidden, str) and len(hidden):
        return [_check_tensor(each) for each in hidden]
    raise _not_hidden(hidden)


def _layers_of(states: Sequence[Tensor] | None, output: Hidden) -> list[Tensor]:
    if states is not None and len(states) > 1:
        return [_check_tensor(each) for each in states[1:]]
    stacks = ("encoder_hidden_states", "decoder_hidden_states")
    there = [key for key in stacks if getattr(output, key, None) is not None]
    raise PenaltyError(
        "expected a model output with hidden states, got one without",
        hint=f"this model has two stacks: give output.{there[-1]}[1:] and its mask"
        if there
        else "call the model with output_hidden_states=True, or set "
        "model.config.output_hidden_states = True once",
        slug="hidden-states-missing",
    )


def _check_tensor(tensor: object) -> Tensor:
    if not isinstance(tensor, Tensor) or not tensor.is_floating_point():
        raise _not_hidden(tensor)
    if tensor.ndim not in (2, 3):
        raise PenaltyError(
            f"expected hidden states (batch, time, d) or rows (n, d), got {tensor.ndim} "
            f"dimensions {tuple(tensor.shape)}",
            hint="flatten what is neither batch nor width into time",
            slug="hidden-states-kind",
        )
    return tensor


def _not_hidden(thing: object) -> PenaltyError:
    kind = str(thing.dtype) if isinstance(thing, Tensor) else type(thing).__name__
    return PenaltyError(
        f"expected a tensor of floats, a list of them or a model output, got {kind}",
        hint="give the output of a model called with output_hidden_states=True",
        slug="hidden-states-kind",
    )


def layer_numbers(layers: Layers, count: int) -> list[int]:
    """Return the numbers of the chosen layers among `count`, from 0."""
    if layers == "all":
        return list(range(count))
    if layers == "last":
        return [count - 1]
    numbers = [layers] if isinstance(layers, int) else list(layers)
    wrong = [n for n in numbers if not isinstance(n, int) or not -count <= n < count]
    if wrong or not numbers:
        raise PenaltyError(
            f"expected layers from 0 to {count - 1}, got {wrong[0]!r}"
            if wrong
            else "expected layers, got an empty list",
            hint="layers count from 0; -1, or 'last', is the last, 'all' is every one",
            slug="penalty-layers",
        )
    return [int(number) % count for number in numbers]


def real_places(hidden: Tensor, mask: Marks | None) -> Array | None:
    """Return for each place of the flattened batch whether it is real; None if all are."""
    if mask is None:
        return None
    marks = torch.as_tensor(mask).detach()
    if marks.shape != hidden.shape[:-1]:
        raise PenaltyError(
            f"expected a mask of shape {tuple(hidden.shape[:-1])}, got {tuple(marks.shape)}",
            hint="give the tokenizer's attention_mask: 1 for a real token, 0 for padding",
            slug="mask-shape",
        )
    flat = marks.reshape(-1).cpu()
    if flat.is_floating_point() and not bool((flat >= 0).all()):  # NaN is neither
        raise PenaltyError(
            "expected a mask of ones and zeros, got negative numbers or NaN",
            hint="this is a mask to be added to scores; give the tokenizer's attention_mask",
            slug="mask-shape",
        )
    return (flat != 0).numpy()


def documents_of(shape: tuple[int, ...], documents: Marks | None) -> Array:
    """Return the document of each place; without numbers, its sequence."""
    if documents is None:
        numbers = np.arange(shape[0])
    else:
        numbers = torch.as_tensor(documents).detach().cpu().numpy()
    if numbers.shape not in (shape, shape[:1]):
        raise PenaltyError(
            f"expected documents of shape {shape[:1]} or {shape}, got {numbers.shape}",
            hint="give one number per sequence, or one per token where sequences are packed",
            slug="documents-shape",
        )
    if numbers.ndim < len(shape):
        numbers = numbers[:, None]
    return np.broadcast_to(numbers, shape)


@dataclass(frozen=True)
class RealTokens:
    """The real tokens of a batch and their documents, and the numbers of other processes."""

    places: Array  # (n,) in the flattened batch
    documents: Array  # (n,) numbered from 0 in this process
    everything: bool  # every place is real
    independent: bool  # every row is its own document
    counts: list[list[int]]  # tokens and documents of each process
    rank: int

    @classmethod
    def of(
        cls, hidden: Tensor, mask: Marks | None, documents: Marks | None, world: World
    ) -> Self:
        """Return the real tokens of a batch; a sequence is a document by default."""
        real = real_places(hidden, mask)
        shape = tuple(hidden.shape[:-1])
        size = int(np.prod(shape))
        places = np.arange(size) if real is None else np.flatnonzero(real)
        whole = documents_of(shape, documents).reshape(-1)[places]
        names, numbers = np.unique(whole, return_inverse=True)
        counts = world.gather([len(places), len(names)], hidden.device)
        independent = documents is None and len(shape) == 1
        return cls(places, numbers, len(places) == size, independent, counts, world.rank)

    @property
    def total(self) -> int:
        """Number of real tokens of all processes."""
        return sum(tokens for tokens, _ in self.counts)

    @property
    def total_documents(self) -> int:
        """Number of documents of all processes."""
        return sum(documents for _, documents in self.counts)

    def halves(self, seed: Sequence[int]) -> Array:
        """Return the half of each token: half of all documents each, dealt by the seed."""
        rng = np.random.default_rng([*seed, 1])
        dealt = np.empty(self.total_documents, dtype=np.int64)
        dealt[rng.permutation(self.total_documents)] = np.arange(self.total_documents) % 2
        before = sum(documents for _, documents in self.counts[: self.rank])
        return dealt[before + self.documents]

    def draw(self, layers: int, budget: int | None, seed: Sequence[int]) -> list[Array]:
        """Return for each layer which of this process's tokens are taken.

        The budget is that of one process. Rows are drawn from those of all processes, so
        that each has the same chance wherever it lies.
        """
        mine, total = len(self.places), self.total
        budget = None if budget is None else budget * len(self.counts)
        if budget is None or layers * total <= budget:
            return [np.arange(mine)] * layers
        rng = np.random.default_rng([*seed, 0])
        drawn = np.sort(rng.choice(layers * total, budget, replace=False, shuffle=False))
        before = sum(tokens for tokens, _ in self.counts[: self.rank])
        starts = np.arange(layers) * total + before
        edges = np.searchsorted(drawn, np.stack([starts, starts + mine], axis=1))
        return [drawn[a:b] - start for start, (a, b) in zip(starts, edges, strict=True)]

    def index(self, taken: Array, layer: Tensor) -> Tensor | None:
        """Return which rows of a flattened layer these tokens are; None if they are all."""
        if self.everything and len(taken) == len(self.places):
            return None
        return torch.from_numpy(self.places[taken]).to(layer.device)


@dataclass(frozen=True)
class LayerSpec:
    """The shape and type of a layer, so that its gradient can be made without keeping it."""

    shape: torch.Size
    dtype: torch.dtype
    device: torch.device

    def zeros(self) -> Tensor:
        """Return a layer of zeros."""
        return torch.zeros(self.shape, dtype=self.dtype, device=self.device)


@dataclass(frozen=True)
class RowSelection:
    """Rows of one or more layers in order, the rows of the first part before the others."""

    pieces: list[tuple[int, Tensor | None]]  # a layer, and which of its rows; None: all
    sizes: list[int]  # rows of each part in this process
    documents: Tensor  # (k,) of each row
    independent: bool

    @classmethod
    def of(
        cls,
        tokens: RealTokens,
        layers: Sequence[Tensor],
        budget: int | None,
        seed: Sequence[int],
        *,
        halved: bool = False,
    ) -> Self:
        """Return rows of some layers, in one part or in two halves of the documents."""
        parts = [tokens.draw(len(layers), budget, seed)]  # by part, then by layer
        if halved:
            half = tokens.halves(seed)
            parts = [[rows[half[rows] == part] for rows in parts[0]] for part in (0, 1)]
        taken = [(number, rows) for part in parts for number, rows in enumerate(part)]
        pieces = [(number, tokens.index(rows, layers[number])) for number, rows in taken]
        sizes = [sum(map(len, part)) for part in parts]
        documents = np.concatenate([tokens.documents[rows] for _, rows in taken])
        return cls(
            pieces, sizes, torch.from_numpy(documents).to(layers[-1].device), tokens.independent
        )

    @property
    def is_copy(self) -> bool:
        """Whether gathered rows are a copy, which may be overwritten."""
        return len(self.pieces) > 1 or any(index is not None for _, index in self.pieces)

    def gather(self, layers: Sequence[Tensor]) -> Tensor:
        """Return the rows (k, d), float64 as they are and all others in float32."""
        width = layers[-1].shape[-1]
        parts: list[Tensor] = []
        for number, index in self.pieces:
            flat = layers[number].detach().reshape(-1, width)
            rows = flat if index is None else flat.index_select(0, index)
            parts.append(rows.to(device=layers[-1].device, dtype=sum_dtype(layers[-1].dtype)))
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def scatter(self, gradient: Tensor, specs: Sequence[LayerSpec]) -> list[Tensor]:
        """Return the gradient of the rows (k, d) as one of the layers; other rows have zero."""
        spread: dict[int, Tensor] = {}
        start = 0
        for number, index in self.pieces:
            spec = specs[number]
            size = spec.shape[:-1].numel() if index is None else len(index)
            rows = gradient[start : start + size].to(device=spec.device, dtype=spec.dtype)
            start += size
            if index is None:
                spread[number] = rows.reshape(spec.shape)
                continue
            if number not in spread:
                spread[number] = spec.zeros()
            spread[number].view(-1, spec.shape[-1]).index_copy_(0, index, rows)
        return [spread[number] for number in range(len(specs))]


def sum_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the type that sums are made in; half precision would lose them."""
    return torch.float64 if dtype == torch.float64 else torch.float32

"""Which rows of which layers a penalty looks at: real tokens only, within a budget."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.control.penalty.hidden import real_places
from isoscope.control.world import Join
from isoscope.errors import PenaltyError
from isoscope.types import Array


@dataclass(frozen=True)
class Tokens:
    """The real tokens of a batch and their documents, and how many other processes have."""

    places: Array  # (n,) in the flattened batch
    documents: Array  # (n,) numbered from 0 in this process
    everything: bool  # no place was left out
    independent: bool  # every row is its own document
    counts: list[list[int]]  # tokens and documents of each process
    rank: int

    @classmethod
    def of(cls, hidden: Tensor, mask: Any, documents: Any, join: Join) -> "Tokens":
        """Return the real tokens of a batch; a sequence is a document unless told otherwise."""
        real = real_places(hidden, mask)
        shape = tuple(hidden.shape[:-1])
        size = int(np.prod(shape))
        places = np.arange(size) if real is None else np.flatnonzero(real)
        whole = documents_of(shape, documents).reshape(-1)[places]
        names, numbers = np.unique(whole, return_inverse=True)
        counts = join.each([len(places), len(names)], hidden.device)
        return cls(
            places,
            numbers,
            len(places) == size,
            documents is None and len(shape) == 1,
            counts,
            join.rank,
        )

    @property
    def total(self) -> int:
        """How many real tokens all processes have."""
        return sum(tokens for tokens, _ in self.counts)

    @property
    def total_documents(self) -> int:
        """How many documents all processes have."""
        return sum(documents for _, documents in self.counts)

    def halves(self, seed: Sequence[int]) -> Array:
        """Return the half of each token: half of all documents each, dealt by the seed."""
        rng = np.random.default_rng([*seed, 1])
        dealt = np.empty(self.total_documents, dtype=np.int64)
        dealt[rng.permutation(self.total_documents)] = np.arange(self.total_documents) % 2
        before = sum(documents for _, documents in self.counts[: self.rank])
        return dealt[before + self.documents]

    def picked(self, layers: int, budget: int | None, seed: Sequence[int]) -> list[Array]:
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


def documents_of(shape: tuple[int, ...], documents: Any) -> Array:
    """Return the document of each place: given by sequence or by place, or its sequence."""
    if documents is None:
        sequences = np.arange(shape[0])
    else:
        sequences = torch.as_tensor(documents).detach().cpu().numpy()
    if sequences.shape not in (shape, shape[:1]):
        raise PenaltyError(
            f"expected documents of shape {shape[:1]} or {shape}, got {sequences.shape}",
            hint="give one number a sequence, or one a token where sequences are packed",
            slug="documents-shape",
        )
    if sequences.ndim < len(shape):
        sequences = sequences[:, None]
    return np.broadcast_to(sequences, shape)


@dataclass(frozen=True)
class Piece:
    """Rows of one layer: all places, or those of an index."""

    layer: int
    index: Tensor | None


@dataclass(frozen=True)
class Cloud:
    """Rows of one or more layers in order, the rows of the first part before the others."""

    pieces: list[Piece]
    sizes: list[int]  # rows of each part in this process
    documents: Tensor  # (k,) of each row
    independent: bool

    @classmethod
    def of(
        cls,
        tokens: Tokens,
        layers: Sequence[Tensor],
        budget: int | None,
        seed: Sequence[int],
        *,
        halved: bool = False,
    ) -> "Cloud":
        """Return the cloud of some layers, in one part or in two halves of the documents."""
        picked = tokens.picked(len(layers), budget, seed)
        half = tokens.halves(seed) if halved else np.zeros(len(tokens.places), dtype=np.int64)
        pieces: list[Piece] = []
        sizes: list[int] = []
        documents: list[Array] = []
        for part in range(2 if halved else 1):
            rows = 0
            for number, layer in enumerate(layers):
                taken = picked[number]
                taken = taken[half[taken] == part] if halved else taken
                whole = tokens.everything and len(taken) == len(tokens.places)
                index = None if whole else torch.from_numpy(tokens.places[taken])
                pieces.append(Piece(number, None if index is None else index.to(layer.device)))
                documents.append(tokens.documents[taken])
                rows += len(taken)
            sizes.append(rows)
        each = torch.from_numpy(np.concatenate(documents)).to(layers[-1].device)
        return cls(pieces, sizes, each, tokens.independent)

    @property
    def copied(self) -> bool:
        """Whether gathered rows are a copy, which may be overwritten."""
        return len(self.pieces) > 1 or any(piece.index is not None for piece in self.pieces)

    def gathered(self, layers: Sequence[Tensor]) -> Tensor:
        """Return the rows, float64 as they are and all others in float32."""
        width = layers[-1].shape[-1]
        parts: list[Tensor] = []
        for piece in self.pieces:
            flat = layers[piece.layer].detach().reshape(-1, width)
            rows = flat if piece.index is None else flat.index_select(0, piece.index)
            parts.append(rows.to(device=layers[-1].device, dtype=working(layers[-1].dtype)))
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def scattered(self, gradient: Tensor, likes: Sequence["Like"]) -> list[Tensor]:
        """Return the gradient of the rows as one of the layers; other rows have zero."""
        spread: dict[int, Tensor] = {}
        start = 0
        for piece in self.pieces:
            like = likes[piece.layer]
            size = like.shape[:-1].numel() if piece.index is None else len(piece.index)
            rows = gradient[start : start + size].to(device=like.device, dtype=like.dtype)
            start += size
            if piece.index is None:
                spread[piece.layer] = rows.reshape(like.shape)
                continue
            if piece.layer not in spread:
                spread[piece.layer] = like.zeros()
            flat = spread[piece.layer].view(-1, like.shape[-1])
            flat.index_copy_(0, piece.index, rows)
        return [spread[number] for number in range(len(likes))]


@dataclass(frozen=True)
class Like:
    """What a layer looked like, so that its gradient can be made without keeping it."""

    shape: torch.Size
    dtype: torch.dtype
    device: torch.device

    @classmethod
    def of(cls, layer: Tensor) -> "Like":
        """Return the looks of a layer."""
        return cls(layer.shape, layer.dtype, layer.device)

    def zeros(self) -> Tensor:
        """Return a layer of zeros."""
        return torch.zeros(self.shape, dtype=self.dtype, device=self.device)


def working(dtype: torch.dtype) -> torch.dtype:
    """Return the type that sums are made in; half precision would lose them."""
    return torch.float64 if dtype == torch.float64 else torch.float32

"""Which positions of a batch are rows, and of which class: ordinary, special, sink or both."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from isoscope.capture.tensor_block import TensorLayout
from isoscope.types import CLASSES, VARIANTS, Array

CONTEXT = 6  # tokens quoted before and after a sink
SINK = 10.0  # a token is a sink above this multiple of the median norm of its document


@dataclass(frozen=True)
class Positions:
    """The positions of a batch that count, and the document of each."""

    real: Array  # (B, T) of the document, not padding
    special: Array  # (B, T)
    documents: Array  # (B,) keys
    folded: bool | None = None  # whether cells are groups of documents; None: by number
    tokens: Array | None = None  # (B, T) ids, where positions are tokens
    bands: Array | None = None  # (vocabulary,) frequency band of each token

    def layouts(self, sinks: Array | None, device: torch.device) -> dict[str, TensorLayout]:
        """Return the rows of each class that has any; `sinks` where some position is one."""
        code = self._code(sinks)
        return {
            CLASSES[number]: self._layout(self.real & (code == number), device)
            for number in np.unique(code[self.real])
        }

    def variants(self, sinks: Array | None, device: torch.device) -> dict[str, TensorLayout]:
        """Return the rows of each variant that has any: a row is in several."""
        code = self._code(sinks)
        members = {
            name: [CLASSES.index(each) for each in classes]
            for name, classes in VARIANTS.items()
        }
        chosen = {name: self.real & np.isin(code, each) for name, each in members.items()}
        return {name: self._layout(mask, device) for name, mask in chosen.items() if mask.any()}

    def _code(self, sinks: Array | None) -> Array:
        code = self.special.astype(np.int8)
        return code if sinks is None else code + 2 * sinks.astype(np.int8)

    def quote(self, place: int, decode: Callable[[list[int]], str]) -> tuple[str, str]:
        """Return the token at a place of the flattened batch, and the words around it."""
        if self.tokens is None:
            return "", ""
        sequence, at = divmod(place, self.real.shape[1])
        near = np.arange(max(0, at - CONTEXT), min(at + CONTEXT + 1, self.real.shape[1]))
        near = near[self.real[sequence, near]]
        row = self.tokens[sequence]
        return decode([int(row[at])]), decode([int(each) for each in row[near]])

    def _layout(self, chosen: Array, device: torch.device) -> TensorLayout:
        sequence, place = np.nonzero(chosen)
        ordinal = np.cumsum(self.real, axis=1) - 1  # of a row within its document
        tokens = None if self.tokens is None else self.tokens[sequence, place]
        frequency = None
        if tokens is not None and self.bands is not None:
            frequency = self.bands[tokens]
        return TensorLayout(
            self.documents[sequence],
            ordinal[sequence, place].astype(np.uint64),
            torch.from_numpy(sequence * self.real.shape[1] + place).to(device),
            folded=self.folded,
            tokens=tokens,
            frequency=frequency,
        )


def sinks(norms: Tensor, real: Tensor, times: float = SINK) -> Tensor:
    """Return which positions are sinks, (B, T), from the norms of a batch.

    A sink's norm exceeds `times` the median norm of its own document at this site
    (of two middle norms the smaller one), so that it does not depend on other documents.
    """
    return (norms > times * _median(norms, real)) & real


def times_median(norms: Tensor, real: Tensor) -> Tensor:
    """Return how many times the median norm of its document each norm is, (B, T)."""
    return norms / _median(norms, real)


def _median(norms: Tensor, real: Tensor) -> Tensor:
    kept = torch.where(real, norms, torch.full_like(norms, torch.nan))
    return kept.nanmedian(dim=1, keepdim=True).values

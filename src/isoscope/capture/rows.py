"""Which positions of a batch are rows, and of which class: ordinary, special, sink or both."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from isoscope.capture.blocks import Layout
from isoscope.types import Array

SINK = 10.0  # times the median norm of its own document, and a token is a sink
CLASSES = ("ordinary", "special", "sink", "special-sink")


@dataclass(frozen=True)
class Positions:
    """The positions of a batch that count, and the document of each."""

    real: Array  # (B, T) of the document, not padding
    special: Array  # (B, T)
    documents: Array  # (B,) keys
    folded: bool | None = None  # whether documents are told apart or fall into groups

    def layouts(self, sinks: Array | None, device: torch.device) -> dict[str, Layout]:
        """Return the rows of each class that has any; `sinks` where some position is one."""
        code = self.special.astype(np.int8)
        if sinks is not None:
            code = code + 2 * sinks.astype(np.int8)
        ordinal = np.cumsum(self.real, axis=1) - 1  # of a row within its document
        width = self.real.shape[1]
        found: dict[str, Layout] = {}
        for number in np.unique(code[self.real]):
            sequence, place = np.nonzero(self.real & (code == number))
            found[CLASSES[number]] = Layout(
                torch.from_numpy(sequence * width + place).to(device),
                self.documents[sequence],
                ordinal[sequence, place].astype(np.uint64),
                folded=self.folded,
            )
        return found


def sinks(norms: Tensor, real: Tensor, times: float = SINK) -> Tensor:
    """Return which positions are sinks, (B, T), from the norms of a batch.

    A sink's norm exceeds so many times the median norm of its own document at this site
    (of two middle norms the smaller one), so that no other document has a say in it.
    """
    kept = torch.where(real, norms, torch.full_like(norms, torch.nan))
    median = kept.nanmedian(dim=1, keepdim=True).values
    return (norms > times * median) & real

"""Rows of different lengths, side by side: padded on the right."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from isoscope.types import Array


def stacked(
    rows: Sequence[Array], *, fill: float = 0, multiple: int = 1, device: torch.device
) -> Tensor:
    """Return 1-D rows as one (B, longest) tensor; longest is rounded up to a multiple."""
    longest = -(-max(len(row) for row in rows) // multiple) * multiple
    table = np.full((len(rows), longest), fill, dtype=rows[0].dtype)
    for line, row in zip(table, rows, strict=True):
        line[: len(row)] = row
    return torch.from_numpy(table).to(device)

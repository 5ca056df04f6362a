"""Pairs of unit vectors in the sample: a kernel summed within and between groups."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from isoscope.accumulate import Reservoir
from isoscope.errors import TooFewRowsError
from isoscope.measures.view.summaries import GroupView, Summaries
from isoscope.types import Array

_CHUNK = 512
SHARPNESS = 2.0  # t of Wang and Isola


@dataclass(frozen=True, kw_only=True)
class Pairs(GroupView):
    """Sums of exp(-t |u - v|^2) over pairs, by the groups of the two."""

    needs = (Reservoir,)
    kernel: Array  # (groups, groups), a row with itself excluded

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the sums over the sample; rows of length zero have no direction."""
        sample = summaries.of(Reservoir)
        norms = np.sqrt(np.vecdot(sample.rows, sample.rows, dtype=np.float64))
        kept = norms > 0
        rows = (sample.rows[kept] / norms[kept, None]).astype(sample.rows.dtype)
        cells = sample.cells[kept]
        if len(rows) < 2:
            raise TooFewRowsError(
                f"uniformity needs at least 2 usable rows, got {len(rows)}",
                hint="rows of length zero have no direction and do not count",
                slug="too-few-rows",
            )
        member = np.eye(len(sample.keys), dtype=rows.dtype)[cells]  # (m, groups)
        kernel = np.zeros((member.shape[1], member.shape[1]))
        for start in range(0, len(rows), _CHUNK):
            part = slice(start, start + _CHUNK)
            near = rows[part] @ rows.T
            np.minimum(near, 1, out=near)
            near -= 1
            near *= 2 * SHARPNESS
            np.exp(near, out=near)
            near[np.arange(len(near)), np.arange(start, start + len(near))] = 0.0
            kernel += member[part].T @ (near @ member)
        return cls(
            keys=sample.keys,
            sizes=member.sum(axis=0, dtype=np.float64),
            documents=len(np.unique(sample.documents)),
            kernel=kernel,
        )

    def without(self, group: int) -> Self:
        """Return the view as if a group had never been seen."""
        keep = np.arange(self.groups) != group
        return replace(super().without(group), kernel=self.kernel[np.ix_(keep, keep)])

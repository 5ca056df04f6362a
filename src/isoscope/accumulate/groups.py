"""Document groups: the second moments of each group in sketch, from which intervals come."""

from collections.abc import Mapping
from copy import copy
from typing import Self

import numpy as np

from isoscope.accumulate.block import Block, directions
from isoscope.accumulate.cellwise import ByGroup, Cellwise
from isoscope.dataclass import dataclass
from isoscope.errors import MergeError
from isoscope.hashing import GROUPS
from isoscope.types import Array


@dataclass(frozen=True, kw_only=True)
class GroupsSummary(ByGroup):
    """For every group: its rows, mean, and second moments about its mean in sketch."""

    arrays = ("halves", "mean", "trace", "sketch", "own", "pairs")
    halves: Array  # (groups,) 0 or 1
    mean: Array  # (groups, d)
    trace: Array  # (groups,)
    own: Array  # (groups,) sum over documents of |sum of rows|^2; NaN in old runs
    pairs: Array  # (groups,) sum over documents of rows squared; NaN in old runs
    sketch: Array  # (groups, d, rank): scatter @ directions

    def about(self, centres: Array) -> tuple[Array, Array]:
        """Return traces and sketches about one centre for each group, (groups, d)."""
        step = self.mean - centres  # (groups, d)
        trace = self.trace + self.sizes * np.einsum("kd,kd->k", step, step)
        seen = step @ directions(self.mean.shape[1])[:, : self.sketch.shape[2]]
        # (groups, d, rank)
        sketch = self.sketch + (self.sizes[:, None] * step)[:, :, None] * seen[:, None, :]
        return trace, sketch


class Groups(Cellwise[GroupsSummary]):
    """Per group: rows, mean, trace, and the scatter times a few fixed random directions.

    A full scatter for each of 32 groups would take gigabytes over the sites of a model; the
    scatter seen from 48 directions tells its part of a spectral reading nearly as well
    (decision 48).
    """

    shapes = {  # noqa: RUF012
        "rows": (),
        "mean": ("width",),
        "trace": (),
        "sketch": ("rank", "width"),
        "own": (),
        "pairs": (),
    }

    def __init__(self, width: int) -> None:
        self.rank = 0  # of the sketch; independent rows need none
        self.precision = np.dtype(np.float32)  # of the sketch; that of the rows
        super().__init__(width)
        self._shared: Array | None = None  # origin of blocks that merely add up
        self._pending: dict[tuple[bool, bytes], dict[str, Array]] = {}

    def _empty(self, name: str, cells: int) -> Array:
        if name != "sketch":
            return super()._empty(name, cells)
        return np.zeros((cells, self.rank, self.width), dtype=self.precision)

    def _agree(self, rank: int, precision: np.dtype[np.floating]) -> None:
        """Take over the rank of the first rows; rows with and without documents do not mix.

        float64 as soon as one part is: rows that are too short or too long for float32
        come in float64.
        """
        if precision != self.precision and precision == np.float64:
            self._settle()
            self.precision = precision
            self.parts["sketch"] = self.parts["sketch"].astype(precision)
        if not self.count:
            self.rank = rank
            self.parts = {name: self._empty(name, 0) for name in self.shapes}
        elif rank != self.rank:
            raise MergeError(
                "cannot merge rows that have documents with rows that have none",
                hint="measure both with --document, or both without",
                slug="merge-documents",
            )

    def _add(self, block: Block) -> None:
        sums, cells = block.sums, block.cells
        self._agree(sums.sketch.shape[1], sums.sketch.dtype)
        parts = {
            "rows": sums.count,
            "mean": sums.total,
            "trace": sums.trace,
            "sketch": sums.sketch,
            "own": block.document_squares.total,
            "pairs": block.document_squares.rows,
        }
        self._add_pending(block.origin, cells.folded, cells.keys, parts)
        self.documents += len(block.members.runs) - 1

    @property
    def _directions(self) -> Array:
        return directions(self.width)[:, : self.rank]

    def _add_pending(
        self, origin: Array, folded: bool, keys: Array, parts: Mapping[str, Array]
    ) -> None:
        """Add raw sums to those about the same origin; recentring every block is slow."""
        if self._shared is not None and (self._shared != origin).any():
            self._settle()
        self._shared = origin
        if folded:  # one place for each group, whichever of them a block has rows of
            held = self._pending.setdefault((True, b""), {"keys": np.arange(GROUPS)})
            for name, part in parts.items():
                if name not in held:
                    held[name] = self._empty(name, GROUPS)
                held[name][keys] += part
            return
        held = self._pending.setdefault((False, keys.tobytes()), {"keys": keys})
        for name, part in parts.items():
            if name in held:
                held[name] += part
            else:
                held[name] = part.astype(self._empty(name, 0).dtype)
        if len(self._pending) > 4:
            self._settle()

    def _settle(self) -> None:
        """Turn pending sums about an origin into cells about their own means."""
        origin, pending = self._shared, self._pending
        self._shared, self._pending = None, {}
        if origin is None:
            return
        for (folded, _), raw in pending.items():
            there = raw["rows"] > 0
            held = {name: part[there] for name, part in raw.items()}
            rows = held["rows"][:, None]
            offset = held["mean"] / rows
            seen = offset @ self._directions
            parts = {
                "rows": held["rows"],
                "mean": origin + offset,
                "trace": held["trace"] - held["rows"] * np.einsum("kd,kd->k", offset, offset),
                "sketch": held["sketch"] - seen[:, :, None] * (rows * offset)[:, None, :],
                "own": held["own"],
                "pairs": held["pairs"],
            }
            self._take_in(held["keys"].astype(np.uint64), folded, parts)

    def _pool(self, slots: Array, parts: Mapping[str, Array]) -> None:
        step, weight = self._pool_means(slots, "rows", parts)  # (cells, d), (cells,)
        seen = step @ self._directions
        gap = seen[:, :, None] * (weight[:, None] * step)[:, None, :]  # (cells, rank, d)
        self.parts["sketch"][slots] += parts["sketch"] + gap
        gaps = weight * np.einsum("kd,kd->k", step, step)
        self.parts["trace"][slots] += parts["trace"] + gaps
        for name in ("own", "pairs"):
            self.parts[name][slots] += parts[name]

    def add_to_cells(self, keys: Array, folded: bool, parts: Mapping[str, Array]) -> None:
        """Add to some of the arrays of cells that have rows; the others stay as they are."""
        self._settle()
        super().add_to_cells(keys, folded, parts)

    def _absorb(self, other: Self) -> None:
        self._agree(other.rank, other.precision)
        self._settle()
        if other._pending:
            other = type(self).from_state(other.state(), width=other.width)
        super()._absorb(other)

    def _arrays(self) -> dict[str, Array]:
        if not self._pending:
            return super()._arrays()
        twin = copy(self)  # that settles, while this one goes on adding up
        twin.parts = {name: part.copy() for name, part in self.parts.items()}
        twin._settle()
        return twin._arrays()

    def _restore(self, state: Mapping[str, Array]) -> None:
        self.rank = int(state["sketch"].shape[1])
        self.precision = state["sketch"].dtype
        # Runs of older versions have neither; single documents still tell their lengths.
        unknown = np.full(len(state["rows"]), np.nan)
        pairs = unknown if state["folded"] else state["rows"] ** 2
        super()._restore({"own": unknown, "pairs": pairs, **state})

    def finalize(self) -> GroupsSummary:
        """Return the groups."""
        self._enough(self.count)
        self._settle()
        return GroupsSummary(
            keys=self.keys.copy(),
            sizes=self.parts["rows"].copy(),
            halves=(self.keys % np.uint64(2)).astype(np.int64),
            mean=self.parts["mean"].copy(),
            trace=self.parts["trace"].copy(),
            own=self.parts["own"].copy(),
            pairs=self.parts["pairs"].copy(),
            sketch=self.parts["sketch"].transpose(0, 2, 1).astype(np.float64),
            documents=self.documents,
        )

"""Rows that a sample keeps: each stays where it is until another takes its place."""

import numpy as np

from isoscope.accumulate.block import RowsOnDevice
from isoscope.types import Array


class KeptRows:
    """Rows in an order that may change while no row is moved."""

    def __init__(self, width: int) -> None:
        self.room = np.empty((0, width), dtype=np.float32)
        self.slots = np.zeros(0, dtype=np.int64)  # where in the room each kept row is

    @property
    def rows(self) -> Array:
        """The kept rows, (m, d), in their order."""
        return self.room[self.slots]

    @rows.setter
    def rows(self, rows: Array) -> None:
        self.room, self.slots = rows, np.arange(len(rows))

    def choose(
        self, order: Array, rows: Array | RowsOnDevice, where: Array, *, most: int
    ) -> None:
        """Keep some of ours and of others, which are `rows[where]`; only these are copied.

        `order` numbers those that are kept: ours first, then the others. There is room for
        twice as many if more may come, but never for more than `most`.
        """
        mine = len(self.slots)
        if not mine:  # nothing stays: one copy is enough
            self.rows = rows[where[order]]
            return
        stay = order < mine
        slots = np.empty(len(order), dtype=np.int64)
        slots[stay] = self.slots[order[stay]]
        self._make_room(len(order), most, rows.dtype)
        free = np.ones(len(self.room), dtype=bool)
        free[slots[stay]] = False
        slots[~stay] = np.flatnonzero(free)[: len(order) - int(stay.sum())]
        self.room[slots[~stay]] = rows[where[order[~stay] - mine]]
        self.slots = slots

    def _make_room(self, rows: int, most: int, dtype: np.dtype[np.generic]) -> None:
        wanted = np.result_type(self.room.dtype, dtype)  # float64 as soon as one part is
        if len(self.room) >= rows and self.room.dtype == wanted:
            return
        size = min(most, max(rows, 2 * len(self.room)))
        room = np.empty((size, self.room.shape[1]), dtype=wanted)
        room[: len(self.room)] = self.room
        self.room = room

"""Lines parsed one by one into a chunk; others are refused, or dropped and counted."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from isoscope.errors import RowError
from isoscope.source.border import shown
from isoscope.source.labels import Role, labelled
from isoscope.source.lines import Line
from isoscope.source.source import Tally
from isoscope.types import Chunk


@dataclass(slots=True)
class Row:
    """What one line holds."""

    vector: list[float]
    document: str | int | None = None
    id: Any = None
    text: Any = None


class BadLineError(Exception):
    """A line that is not a row; says what was found there instead of one."""


@dataclass(frozen=True, slots=True)
class Rowwise:
    """What every line of one source has to be."""

    name: str
    place: str
    width: int
    roles: tuple[Role, ...]
    skip_bad: bool

    def chunk(
        self, batch: list[Line], start: int, parse: Callable[[bytes], Any], tally: Tally
    ) -> Chunk:
        """The rows of a batch of lines, the first of which has the ordinal `start`."""
        rows = np.empty((len(batch), self.width))
        kept: list[int] = []
        labels: dict[Role, list[Any]] = {role: [] for role in self.roles}
        for index, (number, line) in enumerate(batch):
            try:
                row = parse(line)
                self._check(row)
            except BadLineError as error:
                if not self.skip_bad:
                    raise bad_line(self.place, number, self.width, str(error)) from error
                tally.skipped += 1
                continue
            rows[len(kept)] = row.vector
            kept.append(index)
            for role, values in labels.items():
                values.append(getattr(row, role))
        whole = len(kept) == len(batch)
        return Chunk(
            rows[: len(kept)], self.name, start, place=self.place,
            ordinals=None if whole else start + np.array(kept, dtype=np.int64),
            **labelled(dict(labels), self.place),
        )  # fmt: skip

    def _check(self, row: Any) -> None:
        if len(row.vector) != self.width:
            raise BadLineError(f"{len(row.vector)}")
        if "document" in self.roles and row.document is None:
            raise BadLineError("no document")


def bad_line(place: str, number: int, width: int | None, got: str) -> RowError:
    """Return the error for a line that is not a row."""
    return RowError(
        f"expected {width or 'a list of'} numbers in line {number} of {place}, "
        f"got {shown(got)}",
        hint="write one row a line; --skip-bad (skip_bad=True) drops and counts other lines",
        slug="row-not-a-vector",
    )

"""Record batches of Arrow turned into chunks: for parquet, arrow files and data frames."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from isoscope.errors import RowError, SourceError
from isoscope.source.labels import Role, as_documents, labelled
from isoscope.source.schema import Layout, number
from isoscope.source.shape import no_rows, plain, width
from isoscope.source.source import Tally
from isoscope.types import Array, Chunk


def first_width(batches: Iterator[Any], column: str, place: str) -> int:
    """Length of the first list that is there, for columns whose type does not say."""
    import pyarrow.compute

    pc: Any = pyarrow.compute  # its functions are made at run time
    for batch in batches:
        lengths = pc.list_value_length(_stored(batch.column(column))).drop_null()
        if len(lengths):
            return width(lengths[0].as_py(), place)
    raise no_rows(place)


@dataclass(frozen=True, slots=True)
class Converter:
    """Turns batches into chunks; a row that is no vector is refused, or dropped and counted."""

    plan: Layout
    width: int
    name: str
    place: str
    skip_bad: bool

    def chunk(self, batch: Any, start: int, tally: Tally) -> Chunk:
        """The rows of one batch, the first of which has the ordinal `start`."""
        arrays = [_stored(batch.column(name)) for name in self.plan.vector]
        good = self._good(arrays, [batch.column(n) for n in self._required()], start)
        ordinals = None
        if good is not None:
            tally.skipped += len(batch) - len(good)
            batch = batch.take(good)
            arrays = [_stored(batch.column(name)) for name in self.plan.vector]
            ordinals = start + good
        rows = self._rows(arrays, len(batch))
        labels = {
            role: _values(batch.column(name), role, self.place)
            for role, name in self.plan.labels.items()
        }
        return Chunk(
            rows, self.name, start, place=self.place, ordinals=ordinals,
            **labelled(labels, self.place),
        )  # fmt: skip

    def documents(self, batch: Any, start: int) -> Chunk:
        """The documents of one batch without its vectors; rows without one left out."""
        column = batch.column(self.plan.labels["document"])
        kept = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        values = _values(column.drop_null(), "document", self.place)
        return Chunk(
            np.empty((len(kept), 0)), self.name, start, as_documents(values, self.place),
            place=self.place, ordinals=start + kept,
        )  # fmt: skip

    def _required(self) -> list[str]:
        return [name for role, name in self.plan.labels.items() if role == "document"]

    def _rows(self, arrays: list[Any], n: int) -> Array:
        if self.plan.listed:
            values = arrays[0].flatten().to_numpy(zero_copy_only=False)
            return plain(values.reshape(n, self.width))
        dtype = np.result_type(*[number(array.type) for array in arrays])
        rows = np.empty((n, self.width), dtype=dtype)
        for i, array in enumerate(arrays):
            rows[:, i] = array.to_numpy(zero_copy_only=False)
        return plain(rows)

    def _good(self, arrays: list[Any], required: list[Any], start: int) -> Array | None:
        """Indices of the usable rows, or None if all are; the first bad one is refused."""
        problems: dict[int, str] = {}
        for column in [*arrays, *required]:
            if column.null_count:
                for index in _nulls(column).tolist():
                    problems.setdefault(index, "nothing (null)")
        if self.plan.listed:
            self._check_lists(arrays[0], problems)
        if not problems:
            return None
        if not self.skip_bad:
            first = min(problems)
            raise self._bad_row(start + first, problems[first])
        n = len(arrays[0])
        return np.array([i for i in range(n) if i not in problems], dtype=np.int64)

    def _check_lists(self, array: Any, problems: dict[int, str]) -> None:
        import pyarrow.compute

        pc: Any = pyarrow.compute
        there = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
        dense = array.drop_null()
        lengths = pc.list_value_length(dense).to_numpy(zero_copy_only=False)
        for index in np.flatnonzero(lengths != self.width).tolist():
            problems.setdefault(int(there[index]), f"{lengths[index]}")
        values = dense.flatten()
        if values.null_count:
            parents = np.repeat(there, lengths)
            for index in np.unique(parents[_nulls(values)]).tolist():
                problems.setdefault(index, "a null among them")

    def _bad_row(self, row: int, got: str) -> RowError:
        return RowError(
            f"expected {self.width} numbers in row {row} of {self.place} "
            f"(rows count from 0), got {got}",
            hint="--skip-bad (in Python skip_bad=True) drops and counts such rows",
            slug="row-not-a-vector",
        )


def _stored(array: Any) -> Any:
    return array.storage if hasattr(array, "storage") else array


def _values(column: Any, role: Role, place: str) -> Any:
    if hasattr(column, "dictionary_decode"):
        column = column.dictionary_decode()
    try:
        if role == "document" and np.issubdtype(column.type.to_pandas_dtype(), np.integer):
            return column.to_numpy(zero_copy_only=False)
        return column.to_pylist()
    except UnicodeDecodeError as error:
        raise SourceError(
            f"expected UTF-8 text as {role}s of {place}, got other bytes",
            hint="write the column again as UTF-8",
            slug="not-utf8",
        ) from error


def _nulls(column: Any) -> Array:
    return np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))

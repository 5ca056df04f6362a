"""Arrays that are in memory already: NumPy, torch on any device, lists of rows."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from isoscope.errors import RowError, SourceError
from isoscope.source.fingerprint import of_parts, spread
from isoscope.source.npy import no_columns
from isoscope.source.shape import matrix, numeric, plain
from isoscope.source.source import Source, Tally, Wanted
from isoscope.types import Array, Chunk

SAMPLED = 1024  # numbers of a row that go into the fingerprint
Take = Callable[[Any], Array]  # rows for a slice or an array of indices


def open_memory(vectors: Any, wanted: Wanted, name: str = "rows") -> Source:
    """The rows of an array, a tensor or a sequence of rows, converted chunk by chunk."""
    place = f"the {_noun(vectors)}"
    no_columns(wanted, place)
    n, d, dtype, take = _taken(vectors, place)

    def read(limit: int, _tally: Tally) -> Iterator[Chunk]:
        for start in range(0, n, limit):
            rows = plain(take(slice(start, start + limit)))
            yield Chunk(rows, name, start, place=place)

    def stamp() -> str:
        sample = plain(take(np.array(spread(n, 1)))[:, :SAMPLED])
        return of_parts([f"{n} {d} {dtype}", sample.tobytes()])

    return Source(name, d, n, True, dtype, place, read, stamp, live=True)


def _taken(vectors: Any, place: str) -> tuple[int, int, str, Take]:
    """Shape, type, and a function that returns some of the rows as a NumPy array."""
    if hasattr(vectors, "detach") and hasattr(vectors, "cpu"):
        return _tensor(vectors, place)
    if np.ma.is_masked(vectors):
        raise SourceError(
            f"expected real numbers in {place}, got masked ones",
            hint="fill them: rows.filled(np.nan), then skip_bad=True drops those rows",
            slug="masked",
        )
    is_array = hasattr(vectors, "shape") and hasattr(vectors, "dtype")
    if not is_array or (str(vectors.dtype) == "object" and len(vectors.shape) == 1):
        return _sequence(vectors, place)
    shape = tuple(int(each) for each in vectors.shape)
    probe = np.asarray(vectors[:0] if shape else vectors)
    numeric(probe.dtype, place)
    n, d = matrix(shape, place)
    return n, d, probe.dtype.name, lambda some: np.asarray(vectors[some])


def _tensor(tensor: Any, place: str) -> tuple[int, int, str, Take]:
    """A torch tensor, known by its methods: torch itself is not imported here."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype.startswith("complex"):
        numeric(np.dtype(dtype), place)
    n, d = matrix(tuple(int(each) for each in tensor.shape), place)

    def take(some: Any) -> Array:
        try:
            rows = tensor.detach()[some]
            if not _has_numpy_type(dtype):  # bfloat16, float8: float32 holds them exactly
                rows = rows.float()
            return rows.cpu().numpy()
        except (RuntimeError, TypeError, NotImplementedError) as error:
            raise SourceError(
                f"expected a dense tensor of numbers, got {dtype} on {tensor.device}",
                hint="convert it: tensor.to_dense().float().cpu()",
                slug="tensor-kind",
            ) from error

    take(slice(0, 1))
    return n, d, dtype if dtype == "bfloat16" or _has_numpy_type(dtype) else "float32", take


def _sequence(rows: Any, place: str) -> tuple[int, int, str, Take]:
    """A list of rows, or a NumPy array of objects each of which is a row."""
    if not isinstance(rows, Sequence | np.ndarray) or isinstance(rows, str | bytes):
        raise SourceError(
            f"expected a path, an array, a tensor or a data frame, got {_noun(rows)}",
            hint="give an array of shape (rows, width)",
            slug="vectors-kind",
        )
    if len(rows) == 0:
        raise SourceError(
            f"expected vectors in {place}, got 0 rows",
            hint="check the step that makes it, and any filter before that",
            slug="no-rows",
        )
    first = _stacked(rows[:1], 0, None, place)
    numeric(first.dtype, place)
    n, d = matrix((len(rows), *first.shape[1:]), place)

    def take(some: Any) -> Array:
        if isinstance(some, slice):
            return _stacked(rows[some], int(some.start or 0), d, place)
        return _stacked([rows[i] for i in some], 0, d, place)

    return n, d, first.dtype.name, take


def _stacked(rows: Any, start: int, d: int | None, place: str) -> Array:
    try:
        listed = [np.asarray(row) for row in rows]
    except Exception as error:  # whatever the rows are: their __array__ may raise anything
        raise SourceError(
            f"expected rows of numbers in {place}, got {_noun(rows[0])}",
            hint="stack them into one array first",
            slug="vectors-kind",
        ) from error
    for i, row in enumerate(listed):
        if row.dtype.kind not in "fiub":
            numeric(row.dtype, f"row {start + i} of {place}")
        if d is not None and row.shape != (d,):
            raise RowError(
                f"expected {d} numbers in row {start + i} of {place} (rows count from 0), "
                f"got shape {row.shape}",
                hint="make all rows of one width",
                slug="row-not-a-vector",
            )
    return np.stack(listed)


def _has_numpy_type(dtype: str) -> bool:
    return dtype == "bool" or dtype.startswith(("int", "uint", "float16", "float32", "float64"))


def _noun(value: Any) -> str:
    kind = type(value)
    return {"ndarray": "array", "Tensor": "tensor"}.get(kind.__name__, kind.__name__)

"""Arrays in memory: NumPy, torch on any device, lists of rows."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, TypeGuard, cast

import numpy as np

from isoscope.errors import RowError, SourceError
from isoscope.source.fingerprint import of_parts, spread
from isoscope.source.npy import refuse_column
from isoscope.source.row_source import PassCounts, RowSource, VectorRequest
from isoscope.source.shape import check_matrix, check_numeric, no_rows, plain_rows
from isoscope.types import Array, Chunk

SAMPLE = 1024  # numbers of a row that enter the fingerprint
Selection: TypeAlias = slice | Array  # a range of rows, or their indices


Rows: TypeAlias = tuple[int, int, str, Callable[[Selection], Array]]  # n, d, type, take


def open_array(vectors: object, request: VectorRequest, name: str = "rows") -> RowSource:
    """The rows of an array, a tensor or a sequence of rows, converted chunk by chunk."""
    place = f"the {_describe(vectors)}"
    refuse_column(request, place)
    if is_tensor(vectors):
        n, d, dtype, take = _tensor_rows(vectors, place)
    elif _is_array(vectors):
        n, d, dtype, take = _array_rows(vectors, place)
    else:
        n, d, dtype, take = _sequence_rows(vectors, place)

    def read(
        limit: int, _counts: PassCounts, _start: int, _stop: int | None
    ) -> Iterator[Chunk]:
        for start in range(0, n, limit):
            rows = plain_rows(take(slice(start, start + limit)))
            yield Chunk(rows, name, start, place=place)

    def stamp() -> str:
        sample = plain_rows(take(np.array(spread(n, 1)))[:, :SAMPLE])
        return of_parts([f"{n} {d} {dtype}", sample.tobytes()])

    return RowSource(
        name=name,
        width=d,
        rows=n,
        rereadable=True,
        dtype=dtype,
        place=place,
        read=read,
        stamp=stamp,
        live=True,
    )


def is_tensor(value: object) -> bool:
    """Whether a value has the methods of a torch tensor."""
    return hasattr(value, "detach") and hasattr(value, "cpu")


def _is_array(value: object) -> TypeGuard[Array]:
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        return False
    array = cast(Array, value)
    return str(array.dtype) != "object" or len(array.shape) != 1


def _array_rows(array: Array, place: str) -> Rows:
    if np.ma.is_masked(array):
        raise SourceError(
            f"expected real numbers in {place}, got masked ones",
            hint="fill them: rows.filled(np.nan), then skip_bad=True drops those rows",
            slug="masked",
        )
    shape = tuple(int(each) for each in array.shape)
    dtype = np.asarray(array[:0] if shape else array).dtype
    check_numeric(dtype, place)
    n, d = check_matrix(shape, place)
    return n, d, dtype.name, lambda some: np.asarray(array[some])


def _tensor_rows(tensor: Any, place: str) -> Rows:
    """The rows of a torch tensor, known by its methods: torch itself is not imported."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    native = dtype.startswith(("bool", "int", "uint", "float16", "float32", "float64"))
    if dtype.startswith("complex"):
        check_numeric(np.dtype(dtype), place)
    n, d = check_matrix(tuple(int(each) for each in tensor.shape), place)

    def take(some: Selection) -> Array:
        try:
            rows = tensor.detach()[some]
            if not native:  # bfloat16, float8: float32 holds them exactly
                rows = rows.float()
            return rows.cpu().numpy()
        except (RuntimeError, TypeError, NotImplementedError) as error:
            raise SourceError(
                f"expected a dense tensor of numbers, got {dtype} on {tensor.device}",
                hint="convert it: tensor.to_dense().float().cpu()",
                slug="tensor-kind",
            ) from error

    take(slice(0, 1))
    return n, d, dtype if dtype == "bfloat16" or native else "float32", take


def _sequence_rows(rows: object, place: str) -> Rows:
    """A list of rows, or a NumPy array of objects each of which is a row."""
    if not isinstance(rows, Sequence | np.ndarray) or isinstance(rows, str | bytes):
        raise SourceError(
            f"expected a path, an array, a tensor or a data frame, got {_describe(rows)}",
            hint="pass an array of shape (rows, width)",
            slug="vectors-kind",
        )
    listed = cast(Sequence[object], rows)
    if len(listed) == 0:
        raise no_rows(place)
    first = _stack(listed[:1], 0, None, place)
    check_numeric(first.dtype, place)
    n, d = check_matrix((len(listed), *first.shape[1:]), place)

    def take(some: Selection) -> Array:
        if isinstance(some, slice):
            return _stack(listed[some], int(some.start or 0), d, place)
        return _stack([listed[i] for i in some], 0, d, place)

    return n, d, first.dtype.name, take


def _stack(rows: Sequence[object], start: int, d: int | None, place: str) -> Array:
    try:
        arrays = [np.asarray(row) for row in rows]
    except Exception as error:  # whatever the rows are: their __array__ may raise anything
        raise SourceError(
            f"expected rows of numbers in {place}, got {_describe(rows[0])}",
            hint="stack them into one array first",
            slug="vectors-kind",
        ) from error
    for i, row in enumerate(arrays):
        if row.dtype.kind not in "fiub":
            check_numeric(row.dtype, f"row {start + i} of {place}")
        if d is not None and row.shape != (d,):
            raise RowError(
                f"expected {d} numbers in row {start + i} of {place} (rows count from 0), "
                f"got shape {row.shape}",
                hint="make all rows of one width",
                slug="row-not-a-vector",
            )
    return np.stack(arrays)


def _describe(value: object) -> str:
    kind = type(value)
    return {"ndarray": "array", "Tensor": "tensor"}.get(kind.__name__, kind.__name__)

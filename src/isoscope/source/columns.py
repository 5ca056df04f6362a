"""Which columns or arrays hold the vectors and labels: those named, or the obvious ones."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from isoscope.errors import SourceError
from isoscope.registry import unknown
from isoscope.source.border import printable
from isoscope.source.npy import ArrayHeader
from isoscope.source.row_labels import labels_kind, labels_length
from isoscope.source.row_source import Role, VectorRequest
from isoscope.source.shape import check_matrix, check_numeric

PREFERRED = ("embedding", "embeddings", "vector", "vectors", "features")


def match_columns(pattern: str, names: Sequence[str]) -> list[str]:
    """Columns that a name, several names with commas, or patterns such as `e*` stand for."""
    if pattern in names:
        return [pattern]
    columns: dict[str, None] = {}
    for piece in (each.strip() for each in pattern.split(",")):
        found = [name for name in names if name == piece or fnmatchcase(name, piece)]
        if not found:
            raise unknown("column", piece, names)
        columns.update(dict.fromkeys(found))
    return list(columns)


def only_column(lists: Sequence[str], place: str) -> str:
    """The one column that holds lists, or the one with a name that says so."""
    if len(lists) == 1:
        return lists[0]
    for name in PREFERRED:
        if name in lists:
            return name
    raise SourceError(
        f"expected one column of vectors in {place}, got {len(lists)}",
        hint=f"name one with --column: {', '.join(map(printable, lists[:12]))}",
        slug="which-column",
    )


def check_labels(request: VectorRequest, names: Sequence[str]) -> None:
    """Refuse the name of a label column that does not exist."""
    for name in request.labels:
        if name not in names:
            raise unknown("column", name, names)


def no_vectors(place: str, found: Sequence[str]) -> SourceError:
    """Return the error for a table without a column that could be a vector."""
    listed = ", ".join(map(printable, found[:12])) + (", ..." if len(found) > 12 else "")
    return SourceError(
        f"expected columns of numbers in {place}, got none that could be a vector",
        hint=f"name one with --column; the columns are: {listed or '(none)'}",
        slug="no-vector-column",
    )


def not_a_vector(place: str, column: str, got: str) -> SourceError:
    """Return the error for a column that was named and holds something else."""
    return SourceError(
        f"expected lists of numbers in column {column!r} of {place}, got {printable(got)}",
        hint="choose another column, or convert it to lists of floats",
        slug="column-kind",
    )


def vectors_array(arrays: Mapping[str, ArrayHeader], request: VectorRequest, place: str) -> str:
    """The name of the array to read: the one named, or the only two-dimensional one."""
    name = request.column
    if name is None:
        name = _only_array(arrays, request.labels, place)
    elif name not in arrays:
        raise unknown("array", name, arrays)
    where = f"{place}[{printable(name)}]"
    check_numeric(arrays[name].dtype, where)
    check_matrix(arrays[name].shape, where)
    return name


def label_arrays(
    arrays: Mapping[str, ArrayHeader], request: VectorRequest, rows: int, place: str
) -> dict[Role, str]:
    """The names of the arrays that hold labels: one-dimensional, one entry per row."""
    for role, name in request.roles.items():
        if name not in arrays:
            raise unknown("array", name, arrays)
        header = arrays[name]
        if header.dtype.kind not in "iuSU" or header.dtype.itemsize > 1 << 20:
            raise labels_kind(role, place, str(header.dtype))
        if len(header.shape) != 1:
            raise labels_kind(role, place, f"an array of shape {header.shape}")
        if header.shape[0] != rows:
            raise labels_length(role, place, rows, header.shape[0])
    return request.roles


def _only_array(arrays: Mapping[str, ArrayHeader], labels: Sequence[str], place: str) -> str:
    usable = [
        name
        for name, header in arrays.items()
        if len(header.shape) == 2 and header.dtype.kind in "fiub" and name not in labels
    ]
    if len(usable) == 1:
        return usable[0]
    if not usable and len(arrays) == 1:
        return next(iter(arrays))  # its own error is the clearest message
    shapes = [f"{printable(name)} {arrays[name].shape}" for name in (usable or arrays)]
    listed = ", ".join(shapes[:12]) + (", ..." if len(shapes) > 12 else "")
    raise SourceError(
        f"expected one two-dimensional array of numbers in {place}, got {len(usable)}",
        hint=f"name one with --column: {listed}"
        if usable
        else f"save the vectors as an array of shape (rows, width); found: {listed or 'none'}",
        slug="which-array",
    )

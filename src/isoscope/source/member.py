"""Which of several named arrays holds the vectors, and which the labels."""

from collections.abc import Mapping

from isoscope.errors import SourceError
from isoscope.registry import unknown
from isoscope.source.border import shown
from isoscope.source.header import Header
from isoscope.source.labels import ROLES, Role, labels_kind, labels_length
from isoscope.source.shape import matrix, numeric
from isoscope.source.source import Wanted


def vectors_member(arrays: Mapping[str, Header], wanted: Wanted, place: str) -> str:
    """The name of the array to read: the one asked for, or the only two-dimensional one."""
    name = wanted.column
    if name is None:
        name = _only(arrays, place, leave_out=wanted.labels)
    elif name not in arrays:
        raise unknown("array", name, arrays)
    where = f"{place}[{shown(name)}]"
    numeric(arrays[name].dtype, where)
    matrix(arrays[name].shape, where)
    return name


def label_members(
    arrays: Mapping[str, Header], wanted: Wanted, rows: int, place: str
) -> dict[Role, str]:
    """The names of the arrays that hold labels: one-dimensional, one entry a row."""
    chosen: dict[Role, str] = {}
    for role in ROLES:
        name: str | None = getattr(wanted, role)
        if name is None:
            continue
        if name not in arrays:
            raise unknown("array", name, arrays)
        header = arrays[name]
        if header.dtype.kind not in "iuSU" or header.dtype.itemsize > 1 << 20:
            raise labels_kind(role, place, str(header.dtype))
        if len(header.shape) != 1:
            raise labels_kind(role, place, f"an array of shape {header.shape}")
        if header.shape[0] != rows:
            raise labels_length(role, place, rows, header.shape[0])
        chosen[role] = name
    return chosen


def _only(arrays: Mapping[str, Header], place: str, *, leave_out: tuple[str, ...]) -> str:
    usable = [
        name
        for name, header in arrays.items()
        if len(header.shape) == 2 and header.dtype.kind in "fiub" and name not in leave_out
    ]
    if len(usable) == 1:
        return usable[0]
    if not usable and len(arrays) == 1:
        return next(iter(arrays))  # whose own fault is the clearest thing to name
    shapes = [f"{shown(name)} {arrays[name].shape}" for name in (usable or arrays)]
    listed = ", ".join(shapes[:12]) + (", ..." if len(shapes) > 12 else "")
    raise SourceError(
        f"expected one two-dimensional array of numbers in {place}, got {len(usable)}",
        hint=f"name one with --column: {listed}"
        if usable
        else f"save the vectors as an array of shape (rows, width); found: {listed or 'none'}",
        slug="which-array",
    )

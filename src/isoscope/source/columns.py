"""Which columns of a table make the vector: the one named, a pattern, or the obvious one."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from isoscope.errors import SourceError
from isoscope.registry import unknown
from isoscope.source.border import shown
from isoscope.source.source import Wanted

PREFERRED = ("embedding", "embeddings", "vector", "vectors", "features")


def matching(asked: str, names: Sequence[str]) -> list[str]:
    """Columns that a name, several names with commas, or patterns such as `e*` stand for."""
    if asked in names:
        return [asked]
    chosen: dict[str, None] = {}
    for piece in (each.strip() for each in asked.split(",")):
        found = [name for name in names if name == piece or fnmatchcase(name, piece)]
        if not found:
            raise unknown("column", piece, names)
        chosen.update(dict.fromkeys(found))
    return list(chosen)


def the_only(lists: Sequence[str], place: str) -> str:
    """The one column that holds lists, or the one with a name that says so."""
    if len(lists) == 1:
        return lists[0]
    for name in PREFERRED:
        if name in lists:
            return name
    raise SourceError(
        f"expected one column of vectors in {place}, got {len(lists)}",
        hint=f"name one with --column: {', '.join(map(shown, lists[:12]))}",
        slug="which-column",
    )


def labels_exist(wanted: Wanted, names: Sequence[str]) -> None:
    """Refuse the name of a label column that is not there."""
    for name in wanted.labels:
        if name not in names:
            raise unknown("column", name, names)


def no_vectors(place: str, found: Sequence[str]) -> SourceError:
    """Return the error for a table without a column that could be a vector."""
    listed = ", ".join(map(shown, found[:12])) + (", ..." if len(found) > 12 else "")
    return SourceError(
        f"expected columns of numbers in {place}, got none that could be a vector",
        hint=f"name one with --column; the columns are: {listed or '(none)'}",
        slug="no-vector-column",
    )


def not_a_vector(place: str, column: str, got: str) -> SourceError:
    """Return the error for a column that was asked for and holds something else."""
    return SourceError(
        f"expected lists of numbers in column {column!r} of {place}, got {shown(got)}",
        hint="choose another column, or convert it to lists of floats",
        slug="column-kind",
    )

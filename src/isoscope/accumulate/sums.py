"""What a block works out of its rows, once: sums by cell and document, token types, sinks."""

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar, overload

from isoscope.dataclass import dataclass
from isoscope.types import Array

T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801  used as a decorator, as property is
    """A property worked out on first use and kept in the instance.

    Like functools.cached_property, which in Python 3.11 has one lock for all instances of a
    class: two lanes with a block each would wait for each other's matrix products.
    """

    def __init__(self, make: Callable[..., T]) -> None:
        self.make = make
        self.__doc__ = make.__doc__
        self.__isabstractmethod__ = getattr(make, "__isabstractmethod__", False)

    def __set_name__(self, _owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "lazy[T]": ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> "lazy[T] | T":
        if instance is None:
            return self
        value = self.make(instance)
        instance.__dict__[self.name] = value  # found before this descriptor from now on
        return value


@dataclass(frozen=True, slots=True)
class CellSums:
    """Sums over the rows of each cell, z being a row minus the origin, u its unit vector."""

    count: Array  # (cells,)
    nonzero: Array  # (cells,) rows that have a direction
    total: Array  # (cells, d) of z
    trace: Array  # (cells,) of |z|^2
    cubic: Array  # (cells, d) of |z|^2 z
    quartic: Array  # (cells,) of |z|^4
    units: Array  # (cells, d) of u
    energy: Array  # (d,) of u^2, dimension by dimension, over all cells
    sketch: Array  # (cells, rank, d) of (z . directions) z; rank 0 for independent rows


class DocumentSquares(NamedTuple):
    """For each cell, squares summed over its documents: pairs of rows within a document."""

    units: Array  # (cells,) of |sum of u|^2
    nonzero: Array  # (cells,) of the number of rows with a direction, squared
    total: Array  # (cells,) of |sum of x|^2
    rows: Array  # (cells,) of the number of rows, squared


@dataclass(frozen=True)
class DocumentSums:
    """One class of rows: for each of its documents the sums of rows, and sizes."""

    keys: Array  # (documents,)
    units: Array  # (documents, d) of unit vectors
    total: Array  # (documents, d) of the rows themselves
    nonzero: Array  # (documents,)
    rows: Array  # (documents,)


@dataclass(frozen=True)
class SinkRows:
    """What a block of sinks knows of its rows besides their numbers."""

    times: Array  # (n,) norm over the median norm of the document
    quote: Callable[[int], tuple[str, str]]  # the token of a row and its context


@dataclass(frozen=True)
class RowNames:
    """What the source calls some rows."""

    ids: Sequence[str] | None
    texts: Sequence[str] | None
    ordinals: Array  # (n,) in the source

    def of(self, rows: Array) -> tuple[list[str], list[str]]:
        """Return the ids and the texts of chosen rows; empty where there are none."""
        return _of_rows(self.ids, rows), _of_rows(self.texts, rows)

    def only(self, rows: Array) -> "RowNames":
        """Return the names of chosen rows."""
        ids, texts = self.of(rows)
        return RowNames(ids, texts, self.ordinals[rows])


def _of_rows(texts: Sequence[str] | None, rows: Array) -> list[str]:
    return [""] * len(rows) if texts is None else [str(texts[int(row)]) for row in rows]


@dataclass(frozen=True, slots=True)
class TokenTypes:
    """The token types of some rows, and which one each row is of."""

    tokens: Array  # (types,) ids, ascending
    hashes: Array  # (types,) uint64: types of small ones are kept before others
    where: Array  # (n,) type of each row

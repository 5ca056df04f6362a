"""Readings laid out as rows and columns, before any format is chosen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from isoscope.report.escape import plain
from isoscope.report.number import count, short, shown
from isoscope.types import Reading

NOTHING = "no readings"
Reference = Mapping[tuple[str, int, int], float]  # (measure, n, d) to its isotropic value


@dataclass(frozen=True, slots=True)
class Column:
    """A heading and the cells under it."""

    head: str
    cells: tuple[str, ...]
    words: bool = False  # words stand left and are escaped; numbers stand right


@dataclass(frozen=True, slots=True)
class Table:
    """What a page shows of some readings: columns, then notes and numbered warnings."""

    caption: str
    columns: tuple[Column, ...]
    warnings: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # what belongs to the table as a whole

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The cells, row by row."""
        return list(zip(*(column.cells for column in self.columns), strict=True))


def table(
    readings: Sequence[Reading],
    *,
    left_out: Sequence[str] = (),
    isotropic: Reference | None = None,
) -> Table:
    """Lay out readings; what all of them share goes into the caption."""
    warnings = tuple(dict.fromkeys(text for each in readings for text in each.warnings))
    caption, names = _named(readings)
    columns = (*names, *_numbers(readings, isotropic or {}), _marks(readings, warnings))
    return Table(
        caption=caption,
        columns=tuple(column for column in columns if any(column.cells)),
        warnings=tuple(plain(text) for text in warnings),
        left_out=tuple(plain(text) for text in left_out),
    )


def _named(readings: Sequence[Reading]) -> tuple[str, list[Column]]:
    shared: list[str] = []
    columns: list[Column] = []
    for name in ("run", "site", "variant", "group", "step"):
        values = [getattr(each, name) for each in readings]
        cells = tuple("" if value is None else plain(str(value)) for value in values)
        if len(set(cells)) > 1:
            columns.append(Column(name, cells, words=name != "step"))
        elif cells and cells[0]:
            shared.append(f"{name} {cells[0]}")
    measures = tuple(plain(each.measure) for each in readings)
    return ", ".join(shared), [*columns, Column("measure", measures, words=True)]


def _numbers(readings: Sequence[Reading], isotropic: Reference) -> list[Column]:
    pairs = [shown(each.value, each.low, each.high) for each in readings]
    references = [isotropic.get((each.measure, each.n, each.d)) for each in readings]
    return [
        Column("value", tuple(value for value, _ in pairs)),
        Column("95 % interval", tuple(interval for _, interval in pairs)),
        Column("isotropic", tuple(short(value) for value in references)),
        Column("n", tuple(count(each.n) for each in readings)),
        Column("d", tuple(count(each.d) for each in readings)),
    ]


def _marks(readings: Sequence[Reading], warnings: Sequence[str]) -> Column:
    number = {text: str(place) for place, text in enumerate(warnings, start=1)}
    cells = (" ".join(dict.fromkeys(number[w] for w in each.warnings)) for each in readings)
    return Column("warnings", tuple(cells), words=True)

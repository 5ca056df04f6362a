"""The layout of readings: their table, their lines, and the notes beside them."""

from collections.abc import Sequence
from dataclasses import fields

from isoscope.display.escape import plain
from isoscope.display.frames import Field, Line, integers, numbers, texts
from isoscope.display.layers import FOLD, is_wide, layers
from isoscope.display.number import count, short, shown
from isoscope.display.results import DATA, Layout, Reference, Results
from isoscope.display.table import Column, Table
from isoscope.types import Reading

KEYS = tuple(field.name for field in fields(Reading))  # the contract's names, in its order
IN_FULL = "one site in full: isoscope read RUN -s SITE; everything: --json or --csv"


def record(reading: Reading) -> Line:
    """A reading as plain Python values, whatever kind of number went into it."""
    step = None if reading.step is None else int(reading.step)
    low, high = (None if end is None else float(end) for end in (reading.low, reading.high))
    return {
        "run": reading.run,
        "site": reading.site,
        "variant": reading.variant,
        "group": reading.group,
        "step": step,
        "measure": reading.measure,
        "value": float(reading.value),
        "low": low,
        "high": high,
        "n": int(reading.n),
        "d": int(reading.d),
        "warnings": list(reading.warnings),
    }


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


def _tables(readings: Results[Reading]) -> tuple[Table, ...]:
    return (table(readings, left_out=readings.left_out, isotropic=readings.isotropic),)


def _overview(readings: Results[Reading]) -> tuple[Table, ...]:
    """Several sites have one line each."""
    if is_wide(readings):
        return (layers(readings, left_out=readings.left_out),)
    return _tables(readings)


def _notes(readings: Results[Reading], style: str) -> tuple[str, ...]:
    """Remarks are about the run: no table has them."""
    first: tuple[str, ...] = ()
    if style in DATA:
        first = tuple(f"left out: {text}" for text in readings.left_out)
    elif not style and is_wide(readings):
        first = (IN_FULL,)
    return (*first, *(f"note: {text}" for text in readings.remarks))


def _named(readings: Sequence[Reading]) -> tuple[str, list[Column]]:
    shared: list[str] = []
    columns: list[Column] = []
    for name in ("run", "site", "variant", "group", "step"):
        values = [getattr(each, name) for each in readings]
        cells = tuple("" if value is None else plain(str(value)) for value in values)
        if len(set(cells)) > 1:
            columns.append(Column(name, cells, words=name != "step", fold=FOLD.get(name)))
        elif cells and cells[0]:
            shared.append(f"{name} {cells[0]}")
    measures = tuple(plain(each.measure) for each in readings)
    columns.append(Column("measure", measures, words=True, role="name"))
    return ", ".join(shared), columns


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
    return Column("warnings", tuple(cells), words=True, role="marks")


READINGS = Layout(
    name="readings",
    tables=_tables,
    to_dict=record,
    fields=(
        *texts("run", "site", "variant", "group"),
        Field("step", "integer", optional=True),
        Field("measure"),
        *numbers("value", "low", "high"),
        *integers("n", "d"),
        Field("warnings", "texts", joined=True),
    ),
    overview=_overview,
    notes=_notes,
)

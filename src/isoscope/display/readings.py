"""Readings as tables: one line per reading, or one per site with a column per measure."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from isoscope.display.frames import Field, Line, integers, line_of, numbers, texts
from isoscope.display.number import count, format_value, short
from isoscope.display.results import DATA, RecordLayout, Reference, Results
from isoscope.display.table import Column, Table, non_empty, warning_column
from isoscope.escape import plain
from isoscope.types import Reading

USUAL = ("mean-cosine-cross", "isoscore-debiased", "effective-rank-debiased", "mean-share")
WIDEST = 6  # measures side by side; with more, only the usual ones
FULL_TABLE = "all measures of a site: isoscope read RUN -s SITE; everything: --json or --csv"
_NAMES = ("run", "site", "variant", "group", "step")
_FOLD = {"run": 12, "site": 12, "group": 12}  # narrowest widths on a terminal
Place = tuple[str, str, str, str, str]  # run, site, variant, group, step


def record(reading: Reading) -> Line:
    """A reading as plain Python values; NaN stays, which JSON refuses."""
    ends = {name: getattr(reading, name) for name in ("value", "low", "high")}
    return line_of(reading) | {
        k: None if end is None else float(end) for k, end in ends.items()
    }


# --- one line per reading -----------------------------------------------------------------
def reading_table(
    readings: Sequence[Reading],
    *,
    left_out: Sequence[str] = (),
    isotropic: Reference | None = None,
) -> Table:
    """One line per reading; what all of them share is in the caption."""
    warnings = tuple(dict.fromkeys(text for each in readings for text in each.warnings))
    caption, names = _names(readings)
    marks = warning_column((each.warnings for each in readings), warnings)
    columns = (*names, *_numbers(readings, isotropic or {}), marks)
    return Table(
        caption=caption,
        columns=non_empty(columns),
        warnings=tuple(plain(text) for text in warnings),
        left_out=tuple(plain(text) for text in left_out),
    )


def _names(readings: Sequence[Reading]) -> tuple[str, list[Column]]:
    """Return the caption and the columns of names that differ."""
    shared: list[str] = []
    columns: list[Column] = []
    places = [place_of(each) for each in readings]
    for name, cells in zip(_NAMES, zip(*places, strict=True), strict=False):
        if len(set(cells)) > 1:
            columns.append(
                Column(
                    name, tuple(map(plain, cells)), words=name != "step", fold=_FOLD.get(name)
                )
            )
        elif cells[0]:
            shared.append(f"{name} {plain(cells[0])}")
    measures = tuple(plain(each.measure) for each in readings)
    return ", ".join(shared), [*columns, Column("measure", measures, words=True, role="name")]


def _numbers(readings: Sequence[Reading], isotropic: Reference) -> list[Column]:
    pairs = [format_value(each.value, each.low, each.high) for each in readings]
    references = [isotropic.get((each.measure, each.n, each.d)) for each in readings]
    return [
        Column("value", tuple(value for value, _ in pairs)),
        Column("95 % interval", tuple(interval for _, interval in pairs)),
        Column("isotropic", tuple(short(value) for value in references)),
        Column("n", tuple(count(each.n) for each in readings)),
        Column("d", tuple(count(each.d) for each in readings)),
    ]


# --- one line per site --------------------------------------------------------------------
def has_several_sites(readings: Sequence[Reading]) -> bool:
    """Whether one line per site reads better than one line per reading."""
    return len({each.site for each in readings}) > 1


def layer_table(readings: Sequence[Reading], *, left_out: Sequence[str] = ()) -> Table:
    """One line per site, a few measures side by side.

    A variant is shown where it has other rows than `all` has: sinks or special tokens. That
    without special tokens is only in the table of all readings, and so are bands.
    """
    readings = [each for each in readings if not each.group] or readings
    places = shown_places(readings)
    cells = {(place_of(each), each.measure): each for each in readings}
    first = {place: next(r for r in readings if place_of(r) == place) for place in places}
    names = [
        Column(
            name, tuple(plain(place[at]) for place in places), words=True, fold=_FOLD.get(name)
        )
        for at, name in enumerate(_NAMES)
        if name == "site" or len({place[at] for place in places}) > 1
    ]
    values = [
        Column(name, tuple(_value_and_error(cells.get((place, name))) for place in places))
        for name in usual_measures(readings)
    ]
    sizes = [
        Column("n", tuple(count(first[place].n) for place in places)),
        Column("d", tuple(count(first[place].d) for place in places)),
    ]
    caption = ", ".join(
        f"{name} {places[0][at]}"
        for at, name in ((0, "run"), (2, "variant"))
        if places and len({place[at] for place in places}) == 1 and places[0][at]
    )
    return Table(plain(caption), (*names, *values, *sizes), (), tuple(map(plain, left_out)))


def usual_measures(readings: Sequence[Reading]) -> list[str]:
    """Return the measures that are shown: all if they are few, otherwise the usual ones."""
    have = list(dict.fromkeys(each.measure for each in readings))
    if len(have) <= WIDEST:
        return have
    return [name for name in USUAL if name in have] or have[:WIDEST]


def shown_places(readings: Sequence[Reading]) -> list[Place]:
    """Return the places of a layer table: without variants that have the rows of `all`."""
    rows = {(place_of(each), each.measure): each.n for each in readings}
    places: dict[Place, None] = {}
    for each in readings:
        place = place_of(each)
        whole = rows.get(((*place[:2], "all", *place[3:]), each.measure))
        if each.variant == "all" or (each.variant == "no-sink" and each.n != whole):
            places[place] = None
    return list(places) or list(dict.fromkeys(place_of(each) for each in readings))


def place_of(each: Reading) -> Place:
    """Return what tells the lines of a layer table apart."""
    step = "" if each.step is None else str(each.step)
    return (each.run, each.site, each.variant, each.group, step)


def _value_and_error(reading: Reading | None) -> str:
    if reading is None:
        return "–"
    value, interval = format_value(reading.value, reading.low, reading.high)
    if reading.low is None or reading.high is None or not interval:
        return value
    digits = len(value.partition(".")[2])
    reach = max(reading.high - reading.value, reading.value - reading.low)
    return f"{value} ±{reach:.{digits}f}"


# --- the layout ---------------------------------------------------------------------------
def _tables(readings: Results[Reading]) -> tuple[Table, ...]:
    return (reading_table(readings, left_out=readings.left_out, isotropic=readings.isotropic),)


def _overview(readings: Results[Reading]) -> tuple[Table, ...]:
    if has_several_sites(readings):
        return (layer_table(readings, left_out=readings.left_out),)
    return _tables(readings)


def _notes(readings: Results[Reading], style: str) -> tuple[str, ...]:
    """Remarks are about the run: no table has them."""
    first: tuple[str, ...] = ()
    if style in DATA:
        first = tuple(f"skipped: {text}" for text in readings.left_out)
    elif not style and has_several_sites(readings):
        first = (FULL_TABLE,)
    return (*first, *(f"note: {text}" for text in readings.remarks))


READINGS = RecordLayout(
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


# --- other tables of readings -------------------------------------------------------------
def layout_with(
    overview: Callable[[Results[Reading]], tuple[Table, ...]],
) -> RecordLayout[Reading]:
    """Return readings whose overview is another table, which says itself what it leaves out."""
    return replace(READINGS, overview=overview, notes=_notes_of_other)


def _notes_of_other(readings: Results[Reading], style: str) -> tuple[str, ...]:
    skipped = tuple(f"skipped: {text}" for text in readings.left_out if style in DATA)
    return (*skipped, *(f"note: {text}" for text in readings.remarks))


def shown_as(
    readings: Results[Reading], layout: RecordLayout[Reading], remark: str = ""
) -> Results[Reading]:
    """Return the same readings in another layout, with one more remark if there is one."""
    return Results(
        readings,
        layout,
        remarks=(*readings.remarks, *([remark] if remark else [])),
        left_out=readings.left_out,
        trouble=readings.trouble,
        isotropic=readings.isotropic,
    )


def count_warnings(readings: Iterable[Reading], most: int = 3) -> tuple[str, ...]:
    """Return the most frequent warnings, and how many readings have each."""
    counts = Counter(text for each in readings for text in each.warnings)
    return tuple(f"{plain(text)} ({n} readings)" for text, n in counts.most_common(most))


def value_cell(value: float | None) -> str:
    """Return a value without interval as a cell; nothing where there is none."""
    return "" if value is None else format_value(value, None, None)[0]

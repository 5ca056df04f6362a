"""The layer table: one line per site, one column per measure, for a look at a whole model."""

from collections.abc import Sequence

from isoscope.display.escape import plain
from isoscope.display.number import count, shown
from isoscope.display.table import Column, Table
from isoscope.types import Reading

USUAL = ("mean-cosine-cross", "isoscore-debiased", "effective-rank-debiased", "mean-share")
WIDEST = 6  # measures side by side; more have a line each in the plain table
FOLD = {"run": 12, "site": 12, "group": 12}  # narrowest widths on a terminal
Line = tuple[str, str, str, str, str]  # run, site, variant, group, step


def is_wide(readings: Sequence[Reading]) -> bool:
    """Whether readings are of several sites, so that a line for each measure is too long."""
    return len({each.site for each in readings}) > 1


def layers(readings: Sequence[Reading], *, left_out: Sequence[str] = ()) -> Table:
    """Lay out a few measures of every site side by side.

    A variant is shown where it has other rows than `all` has: sinks or special tokens. That
    without special tokens is left to the plain table.
    """
    grouped = [each for each in readings if each.group]
    if len(grouped) < len(readings):  # bands are left to the plain table
        readings = [each for each in readings if not each.group]
    measures = columns(readings)
    lines = _lines(readings)
    cells = {(_line(each), each.measure): each for each in readings}
    first = {line: next(each for each in readings if _line(each) == line) for line in lines}
    names = ("run", "site", "variant", "group", "step")
    kept = [
        Column(
            name, tuple(plain(line[place]) for line in lines), words=True, fold=FOLD.get(name)
        )
        for place, name in enumerate(names)
        if name == "site" or len({line[place] for line in lines}) > 1
    ]
    values = [
        Column(name, tuple(_shown(cells.get((line, name))) for line in lines))
        for name in measures
    ]
    sizes = [
        Column("n", tuple(count(first[line].n) for line in lines)),
        Column("d", tuple(count(first[line].d) for line in lines)),
    ]
    return Table(_caption(lines), (*kept, *values, *sizes), (), tuple(map(plain, left_out)))


def columns(readings: Sequence[Reading]) -> list[str]:
    """Return the measures that are shown: the usual ones, or what there is if that is few."""
    have = list(dict.fromkeys(each.measure for each in readings))
    if len(have) <= WIDEST:
        return have
    return [name for name in USUAL if name in have] or have[:WIDEST]


def _lines(readings: Sequence[Reading]) -> list[Line]:
    rows = {(_line(each), each.measure): each.n for each in readings}
    lines: dict[Line, None] = {}
    for each in readings:
        line = _line(each)
        whole = rows.get(((*line[:2], "all", *line[3:]), each.measure))
        if each.variant == "all" or (each.variant == "no-sink" and each.n != whole):
            lines[line] = None
    return list(lines) or list(dict.fromkeys(_line(each) for each in readings))


def _line(each: Reading) -> Line:
    step = "" if each.step is None else str(each.step)
    return (each.run, each.site, each.variant, each.group, step)


def _shown(reading: Reading | None) -> str:
    if reading is None:
        return "–"
    value, interval = shown(reading.value, reading.low, reading.high)
    if reading.low is None or reading.high is None or not interval:
        return value
    digits = len(value.partition(".")[2])
    return f"{value} ±{(reading.high - reading.low) / 2:.{digits}f}"


def _caption(lines: Sequence[Line]) -> str:
    shared = [
        f"{name} {lines[0][place]}"
        for place, name in ((0, "run"), (2, "variant"))
        if lines and len({line[place] for line in lines}) == 1 and lines[0][place]
    ]
    return plain(", ".join(shared))

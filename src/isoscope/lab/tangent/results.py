"""Readings of gradients as tables: one line per site, or per step of a series."""

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median

from isoscope.accumulate import FREQUENCIES
from isoscope.accumulate.gradients import HALVES
from isoscope.dataclass import dataclass
from isoscope.display import (
    Column,
    Results,
    Table,
    count_warnings,
    format_value,
    layout_with,
    non_empty,
    plain,
    shown_as,
    value_cell,
)
from isoscope.study.gradients import COMPLEMENT, CONTROL_GROUPS, RANDOM, SHUFFLED
from isoscope.types import Reading

ENERGY, RATIO, RISE = "tangent-energy", "tangent-energy-ratio", "tangent-anisotropy"
ANGLE = "tangent-angle"  # of a direction to the proxy of the checkpoint before, in degrees
ABOVE, BELOW, NEITHER = "above", "below", "neither"
COLUMNS = (  # head, measure and group
    ("energy", ENERGY, ""),
    ("shuffled energy", ENERGY, SHUFFLED),
    ("/ complement", RATIO, COMPLEMENT),
    ("/ random", RATIO, RANDOM),
    ("/ shuffled", RATIO, SHUFFLED),
    ("p", f"{ENERGY}-p", RANDOM),
    ("rise", RISE, ""),
    ("- complement", RISE, COMPLEMENT),
    ("- random", RISE, RANDOM),
    ("- shuffled", RISE, SHUFFLED),
    ("p of rise", f"{RISE}-p", RANDOM),
)
EXPLAINED = (
    "energy: share of the gradients' energy in the proxy; /: that over the same of a control; "
    "rise: of IsoScore* without the proxy; -: less that of a control; p: against random "
    "subspaces"
)
EVERY = "intervals, halves, bands and directions: isoscope read RUN -s grad.3, --json or --csv"


@dataclass(frozen=True)
class Line:
    """The readings of one line of a table: of a site, or of all sites of a step."""

    name: str
    readings: list[Reading]

    def has(self, measure: str, group: str) -> bool:
        """Whether there is such a reading."""
        return any((r.measure, r.group) == (measure, group) for r in self.readings)

    def median(self, measure: str, group: str) -> float | None:
        """Return the median over sites; of one site, its value."""
        values = [r.value for r in self.readings if (r.measure, r.group) == (measure, group)]
        return median(values) if values else None


def sites_of(readings: Iterable[Reading]) -> list[Line]:
    """Return a line per site."""
    found: dict[str, list[Reading]] = {}
    for each in readings:
        found.setdefault(each.site, []).append(each)
    return [Line(site, here) for site, here in found.items()]


def steps_of(readings: Iterable[Reading]) -> list[Line]:
    """Return a line per step of a series."""
    found: dict[int, list[Reading]] = {}
    for each in readings:
        if each.step is not None:
            found.setdefault(each.step, []).append(each)
    return [Line(str(step), found[step]) for step in sorted(found)]


def verdict(reading: Reading) -> str:
    """Return whether a ratio is above or below 1, its interval included, or neither."""
    if reading.low is None or reading.high is None:
        return NEITHER
    if reading.low > 1:
        return ABOVE
    return BELOW if reading.high < 1 else NEITHER


def sentence(readings: Iterable[Reading]) -> str:
    """Say at how many sites and steps gradients prefer the proxy to each control."""
    ratios = [each for each in readings if each.measure == RATIO]
    parts: list[str] = []
    for group in CONTROL_GROUPS:
        here = [each for each in ratios if each.group == group]
        if here:
            count = Counter(map(verdict, here))
            middle = format_value(median(each.value for each in here), None, None)[0]
            parts.append(
                f"{group} {count[ABOVE]} above and {count[BELOW]} below 1 of {len(here)} "
                f"(median {middle})"
            )
    return f"energy ratios, intervals included: {'; '.join(parts)}" if parts else ""


def site_tables(readings: Results[Reading]) -> tuple[Table, ...]:
    """One line per site, and one of halves and frequency bands."""
    lines = sites_of(readings)
    parts = [("early", HALVES[0]), ("late", HALVES[1])]
    parts += [(name.removeprefix("frequency "), name) for name in FREQUENCIES]
    tables = [_table("site", lines, readings, COLUMNS, [], (EXPLAINED, EVERY))]
    for measure, words in ((ENERGY, "energy"), (RISE, "rise")):
        groups = tuple((head, measure, group) for head, group in parts)
        here = [each for each in lines if any(each.has(*column[1:]) for column in groups)]
        if here:
            words = f"{words} by half and frequency band"
            tables.append(_table("site", here, readings, groups, [words], ()))
    return tuple(tables)


def step_tables(readings: Results[Reading]) -> tuple[Table, ...]:
    """One line per step of a series: medians over sites."""
    lines = steps_of(readings)
    words = f"{len(lines)} checkpoints, step {lines[0].name} to {lines[-1].name}"
    notes = (f"medians over sites; {EXPLAINED}", EVERY)
    return (_table("step", lines, readings, COLUMNS, [words], notes),)


def _table(
    of: str,
    lines: Sequence[Line],
    readings: Results[Reading],
    shown: Sequence[tuple[str, str, str]],
    words: Sequence[str],
    notes: tuple[str, ...],
) -> Table:
    run = next((each.run for each in readings), "")
    columns = [Column(of, tuple(plain(each.name) for each in lines), words=True)]
    columns += [
        Column(head, tuple(value_cell(each.median(measure, group)) for each in lines))
        for head, measure, group in shown
    ]
    first = bool(notes)
    return Table(
        plain(", ".join([f"run {run}", *words])),
        non_empty(columns),
        count_warnings(readings) if first else (),
        tuple(map(plain, readings.left_out)) if first else (),
        notes,
    )


SITES, STEPS = layout_with(site_tables), layout_with(step_tables)


def tangent_results(readings: Results[Reading]) -> Results[Reading]:
    """Return readings that show as sites, or as steps of a series."""
    series = any(each.step is not None for each in readings)
    return shown_as(readings, STEPS if series else SITES, sentence(readings))

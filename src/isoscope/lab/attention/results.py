"""Readings of heads as tables: one line per layer, or per step of a series."""

from collections.abc import Iterable, Sequence
from statistics import median

from isoscope.dataclass import dataclass
from isoscope.display import (
    Column,
    Results,
    Table,
    count_warnings,
    layout_with,
    non_empty,
    plain,
    shown_as,
    value_cell,
)
from isoscope.lab.attention.order import EARLY, find_orders
from isoscope.site import HEAD, Site, prefix_of
from isoscope.types import Reading

ALIGNED, OPPOSED, NEITHER = "aligned", "opposed", "neither"
# What the table of layers shows: medians over heads.
SHOWN = (
    "query-key-cosine",
    "query-cosine",
    "key-cosine",
    "score-spread",
    "attention-entropy",
    "largest-probability",
    "first-token-mass",
    "sink-mass",
)
OF_KEYS = ("key-norm", "key-cosine", "key-isoscore")  # the same for heads that share keys
COUNTED = (
    "aligned, opposed: heads whose mean query and mean key have a cosine above or below 0, "
    "its 95 % interval included; other columns are medians over the heads of a {of}, keys "
    "that heads share counted once"
)
BEFORE = "before: before rotary positions are applied, which average means away"
EVERY = (
    "every head: --json or --csv; of a run that was saved with -o, isoscope read RUN -s "
    "head.3.1 and isoscope report RUN"
)


@dataclass(frozen=True)
class Line:
    """The heads of one line of a table: of a layer, or of a step."""

    name: str
    readings: list[Reading]

    def of(self, measure: str, group: str = "") -> list[Reading]:
        """Return the readings of a measure, one per head."""
        return [r for r in self.readings if (r.measure, r.group) == (measure, group)]

    def median(self, measure: str, group: str = "") -> float | None:
        """Return the median over heads; keys that heads share count once."""
        values = [each.value for each in self.distinct(measure, group)]
        return median(values) if values else None

    def distinct(self, measure: str, group: str = "") -> list[Reading]:
        """Return the readings of a measure, those of keys that heads share once.

        Keys are the same where their readings are, bit for bit, within a layer.
        """
        found = self.of(measure, group)
        if measure not in OF_KEYS:
            return found
        layers = ((Site.parse(each.site), each) for each in found)
        once = {(site.stack, site.layer, each.value): each for site, each in layers}
        return list(once.values())


def layers_of(readings: Iterable[Reading]) -> list[Line]:
    """Return the layers that have heads, in order."""
    found: dict[tuple[str, int], list[Reading]] = {}
    for each in readings:
        site = Site.parse(each.site)
        if site.family == HEAD and site.layer is not None:
            found.setdefault((site.stack, site.layer), []).append(each)
    return [
        Line(f"{prefix_of(stack)}{number}", here) for (stack, number), here in found.items()
    ]


def steps_of(readings: Iterable[Reading]) -> list[Line]:
    """Return the heads of each step of a series, in order."""
    found: dict[int, list[Reading]] = {}
    for each in readings:
        if each.step is not None and Site.parse(each.site).family == HEAD:
            found.setdefault(each.step, []).append(each)
    return [Line(str(step), found[step]) for step in sorted(found)]


def verdict(reading: Reading) -> str:
    """Return whether the means of a head align, oppose each other, or neither.

    Without an interval nothing is sure.
    """
    if reading.low is None or reading.high is None:
        return NEITHER
    if reading.low > 0:
        return ALIGNED
    return OPPOSED if reading.high < 0 else NEITHER


def alignment(readings: Iterable[Reading], group: str = "") -> dict[str, int]:
    """Return how many heads align, oppose, and do neither."""
    chosen = [
        verdict(each)
        for each in readings
        if (each.measure, each.group) == ("query-key-cosine", group)
    ]
    return {name: chosen.count(name) for name in (ALIGNED, OPPOSED, NEITHER)}


def layer_tables(readings: Results[Reading]) -> tuple[Table, ...]:
    """One line per layer, and the counts of all heads in the caption."""
    counts = [
        f"{words}: {', '.join(f'{n} {name}' for name, n in alignment(readings, group).items())}"
        for words, group in (("heads", ""), ("before rotation", EARLY))
        if any(each.group == group for each in readings if each.measure == "query-key-cosine")
    ]
    return (_table("layer", layers_of(readings), readings, counts),)


def step_tables(readings: Results[Reading]) -> tuple[Table, ...]:
    """One line per step of a series, and what comes first in the notes."""
    lines = steps_of(readings)
    words = f"{len(lines)} checkpoints, step {lines[0].name} to {lines[-1].name}"
    return (_table("step", lines, readings, [words]),)


def _table(
    of: str, lines: Sequence[Line], readings: Results[Reading], words: Sequence[str]
) -> Table:
    run = next((each.run for each in readings), "")
    columns = (
        Column(of, tuple(each.name for each in lines), words=True),
        Column("heads", tuple(str(len(each.of("query-key-cosine"))) for each in lines)),
        *_counts(lines, ""),
        *_counts(lines, EARLY),
        *(
            Column(name, tuple(value_cell(each.median(name)) for each in lines))
            for name in SHOWN
        ),
    )
    left_out = tuple(map(plain, readings.left_out))
    warnings = count_warnings(readings)
    early = any(each.group == EARLY for each in readings)
    notes = (COUNTED.format(of=of), *([BEFORE] if early else []), EVERY)
    return Table(
        plain(", ".join([f"run {run}", *words])), non_empty(columns), warnings, left_out, notes
    )


def _counts(layers: Sequence[Line], group: str) -> list[Column]:
    if not any(each.of("query-key-cosine", group) for each in layers):
        return []
    found = [alignment(each.readings, group) for each in layers]
    suffix = " before" if group else ""
    return [
        Column(f"{name}{suffix}", tuple(str(each[name]) for each in found))
        for name in (ALIGNED, OPPOSED)
    ]


HEADS, STEPS = layout_with(layer_tables), layout_with(step_tables)


def attention_results(readings: Results[Reading]) -> Results[Reading]:
    """Return readings that show as layers of heads, or as steps of a series."""
    series = any(each.step is not None for each in readings)
    first = find_orders(readings).sentence if series else ""
    return shown_as(readings, STEPS if series else HEADS, first)

"""Readings of heads as tables: one line per layer, and how many heads align or oppose."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from isoscope.display import READINGS, Column, Results, Table, format_value, non_empty, plain
from isoscope.site import HEAD, Site, prefix_of
from isoscope.types import Reading

EARLY = "before-rotation"
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
NOTES = (
    "aligned, opposed: heads whose mean query and mean key have a cosine above or below 0, "
    "its 95 % interval included; other columns are medians over the heads of a layer, keys "
    "that heads share counted once",
    "before: before rotary positions are applied, which average means away",
    "every head: isoscope read RUN -s head.3.1, --json or --csv",
)


@dataclass(frozen=True)
class Layer:
    """The heads of one layer of one stack."""

    stack: str
    number: int
    readings: list[Reading]

    @property
    def name(self) -> str:
        """What the layer is called in tables."""
        return f"{prefix_of(self.stack)}{self.number}"

    def of(self, measure: str, group: str = "") -> list[Reading]:
        """Return the readings of a measure, one per head."""
        return [r for r in self.readings if (r.measure, r.group) == (measure, group)]

    def median(self, measure: str, group: str = "") -> float | None:
        """Return the median over heads; keys that heads share count once."""
        values = [each.value for each in self.of(measure, group)]
        if measure in OF_KEYS:
            values = list(dict.fromkeys(values))
        return median(values) if values else None


def layers_of(readings: Iterable[Reading]) -> list[Layer]:
    """Return the layers that have heads, in order."""
    found: dict[tuple[str, int], list[Reading]] = {}
    for each in readings:
        site = Site.parse(each.site)
        if site.family == HEAD and site.layer is not None:
            found.setdefault((site.stack, site.layer), []).append(each)
    return [Layer(stack, number, here) for (stack, number), here in found.items()]


def verdict(reading: Reading) -> str:
    """Return whether the means of a head align, oppose each other, or neither."""
    low = reading.value if reading.low is None else reading.low
    high = reading.value if reading.high is None else reading.high
    if low > 0:
        return ALIGNED
    return OPPOSED if high < 0 else NEITHER


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
    layers = layers_of(readings)
    run = next((each.run for each in readings), "")
    counts = [
        f"{words}: {', '.join(f'{n} {name}' for name, n in alignment(readings, group).items())}"
        for words, group in (("heads", ""), ("before rotation", EARLY))
        if any(each.group == group for each in readings if each.measure == "query-key-cosine")
    ]
    caption = plain(", ".join([f"run {run}", *counts]))
    columns = (
        Column("layer", tuple(each.name for each in layers), words=True),
        Column("heads", tuple(str(len(each.of("query-key-cosine"))) for each in layers)),
        *_counts(layers, ""),
        *_counts(layers, EARLY),
        *(Column(name, tuple(_cell(each.median(name)) for each in layers)) for name in SHOWN),
    )
    left_out = tuple(map(plain, readings.left_out))
    return (Table(caption, non_empty(columns), (), left_out, NOTES),)


def _counts(layers: Sequence[Layer], group: str) -> list[Column]:
    if not any(each.of("query-key-cosine", group) for each in layers):
        return []
    found = [alignment(each.readings, group) for each in layers]
    suffix = " before" if group else ""
    return [
        Column(f"{name}{suffix}", tuple(str(each[name]) for each in found))
        for name in (ALIGNED, OPPOSED)
    ]


def _cell(value: float | None) -> str:
    return "" if value is None else format_value(value, None, None)[0]


def _notes(readings: Results[Reading], style: str) -> tuple[str, ...]:
    remarks = tuple(f"note: {text}" for text in readings.remarks)
    skipped = tuple(f"skipped: {text}" for text in readings.left_out)
    return (*(skipped if style in ("json", "csv") else ()), *remarks)


HEADS = replace(READINGS, overview=layer_tables, notes=_notes)


def attention_results(readings: Results[Reading]) -> Results[Reading]:
    """Return readings that show as layers of heads."""
    return Results(
        readings,
        HEADS,
        remarks=readings.remarks,
        left_out=readings.left_out,
        trouble=readings.trouble,
        isotropic=readings.isotropic,
    )

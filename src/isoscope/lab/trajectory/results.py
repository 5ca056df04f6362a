"""What a trajectory found: one measure at one site over all steps, and how these look."""

from collections.abc import Iterable, Sequence

from isoscope.dataclass import dataclass
from isoscope.display import (
    USUAL,
    Column,
    Field,
    Record,
    RecordLayout,
    Results,
    Table,
    format_value,
    integers,
    non_empty,
    plain,
    texts,
)
from isoscope.measures.difference import Difference

LOSS = "loss"
WIDEST = 6  # measures that are all shown; with more, the usual ones, the others with --json
THEORY_READINGS = (  # readings that no measure of rows gives, in the order of their table
    "hull-has-origin",
    "hull-if-isotropic",
    "hull-margin",
    "norm-gain",
    "norm-bias",
    "norm-ratio",
    "norm-reference",
    "norm-cosine-before",
    "norm-cosine-gain",
    "norm-cosine-bias",
    "norm-cosine-bias-alone",
    "partition",
    "partition-centred",
)
BY_FREQUENCY = ("row-norm", "common-share", "away-cosine", "away-projection")
BAND = "frequency "
HULL = (
    "hull-has-origin: 1 where the convex hull of final states contains the origin; "
    "hull-if-isotropic: the chance of that for an isotropic cloud (Wendel)"
)
LAG = (
    "lead: correlation with the metric that many checkpoints later, at the lag where it is "
    "strongest; the p of it is corrected for the number of lags"
)
CORRECTED = (
    "differences are paired by document; p of an onset is corrected for the number of steps, "
    "not for the number of lines"
)
MORE = "{lines} of other measures, groups and sites: --json, or isoscope report"


@dataclass(frozen=True)
class OnsetFound(Record):
    """The first step that differs from the first one."""

    step: int | None
    p: float | None  # of that step, corrected for the number of steps
    note: str = ""


@dataclass(frozen=True)
class SuddenFound(Record):
    """Where a curve leaves a smooth trend."""

    step: int | None
    low: int | None  # 95 % interval of the place
    high: int | None
    size: float | None
    p: float | None
    note: str = ""


@dataclass(frozen=True)
class MetricLink(Record):
    """How a curve and a metric move together, and whether the curve leads."""

    metric: str
    correlation: float | None  # of what is left without the trends
    p: float | None
    lag: int | None  # checkpoints by which the curve is ahead, where that fits best
    lead_correlation: float | None
    lead_p: float | None
    steps: int  # that both have
    note: str = ""


@dataclass(frozen=True)
class Course(Record):
    """One measure at one site over the steps of a series."""

    site: str
    variant: str
    group: str
    measure: str
    steps: list[int]
    values: list[float]
    low: list[float | None]  # 95 % intervals of the values
    high: list[float | None]
    differences: list[Difference]  # to the first step, of all later ones
    onset: OnsetFound
    sudden: SuddenFound
    metrics: list[MetricLink]

    @property
    def change(self) -> Difference:
        """What the last step differs by from the first."""
        return self.differences[-1]


def shown_measures(names: Iterable[str]) -> set[str]:
    """Return the measures that tables show: all if they are few, otherwise the usual ones."""
    others = {LOSS, *THEORY_READINGS, *BY_FREQUENCY}
    have = [name for name in dict.fromkeys(names) if name not in others]
    usual = [name for name in USUAL if name in have]
    return {LOSS, *(have if len(have) <= WIDEST or not usual else usual)}


def course_tables(found: Results[Course]) -> tuple[Table, ...]:
    """One line per site of the usual measures."""
    shown = shown_measures(each.measure for each in found)
    lines = [
        each
        for each in found
        if each.measure in shown and not each.group and each.variant == "all"
    ]
    theories = _theory_lines(found) if lines else []
    lines = lines or list(found)
    shared = found.shared
    caption = plain(
        f"{shared['series']}, {shared['checkpoints']} checkpoints, step {shared['first']} to "
        f"{shared['last']}"
    )
    more = len(found) - len(lines) - len(theories)
    remarks = (
        *found.remarks,
        *([MORE.format(lines=f"{more} more line{'s' * (more != 1)}")] if more else []),
    )
    left_out = tuple(map(plain, found.left_out))
    if not lines:
        return (Table(caption, (), tuple(map(plain, remarks)), left_out),)
    return (
        Table(caption, non_empty(_columns(lines)), tuple(map(plain, remarks)), left_out),
        *_theory_tables(theories),
        *_metric_tables(lines),
    )


def _columns(lines: Sequence[Course]) -> tuple[Column, ...]:
    first = (format_value(e.values[0], e.low[0], e.high[0])[0] for e in lines)
    last = (format_value(e.values[-1], e.low[-1], e.high[-1])[0] for e in lines)
    apart = [format_value(e.change.value, e.change.low, e.change.high) for e in lines]
    return (
        Column("site", tuple(plain(each.site) for each in lines), words=True, fold=12),
        Column("measure", tuple(plain(e.measure) for e in lines), words=True, role="name"),
        Column("first", tuple(first)),
        Column("last", tuple(last)),
        Column("last - first", tuple(value for value, _ in apart)),
        Column("95 % interval", tuple(interval for _, interval in apart)),
        Column("onset", tuple(_or_dash(each.onset.step) for each in lines)),
        Column("sudden", tuple(map(_sudden, lines))),
    )


def _theory_lines(found: Sequence[Course]) -> list[Course]:
    """Return what older theories are about, in the order of their tables."""
    named = {name: place for place, name in enumerate(THEORY_READINGS)}
    lines = [e for e in found if e.measure in named and not e.group and e.variant == "all"]
    lines.sort(key=lambda each: named[each.measure])  # stable: sites stay in order
    return lines + [e for e in found if e.measure in BY_FREQUENCY and e.group.startswith(BAND)]


def _theory_tables(lines: Sequence[Course]) -> list[Table]:
    """Return one line per reading, and one per matrix and band of tokens."""
    whole = [each for each in lines if not each.group]
    bands: dict[tuple[str, str], dict[str, Course]] = {}
    for each in lines:
        if each.group:
            place = each.site, each.group.removeprefix(BAND)
            bands.setdefault(place, {})[each.measure] = each
    tables: list[Table] = []
    if whole:
        columns = (
            Column("site", tuple(plain(e.site) for e in whole), words=True, fold=12),
            Column("reading", tuple(plain(e.measure) for e in whole), words=True, role="name"),
            Column("first", tuple(_at(each, 0) for each in whole)),
            Column("last", tuple(_at(each, -1) for each in whole)),
        )
        notes = (HULL,) if any(e.measure == THEORY_READINGS[0] for e in whole) else ()
        tables.append(Table("Older theories", columns, notes=notes))
    if bands:
        columns = (
            Column("site", tuple(plain(site) for site, _ in bands), words=True, fold=12),
            Column("frequency", tuple(plain(band) for _, band in bands), words=True),
            *(
                Column(name, tuple(_from_to(each.get(name)) for each in bands.values()))
                for name in BY_FREQUENCY
            ),
        )
        caption = "Rows of matrices by frequency of their token, first to last step"
        tables.append(Table(caption, non_empty(columns)))
    return tables


def _at(each: Course, step: int) -> str:
    return format_value(each.values[step], each.low[step], each.high[step])[0]


def _from_to(each: Course | None) -> str:
    return "" if each is None else f"{_at(each, 0)} to {_at(each, -1)}"


def _metric_tables(lines: Sequence[Course]) -> list[Table]:
    """Return one table per metric: what moves with it, and what leads it."""
    names = dict.fromkeys(link.metric for each in lines for link in each.metrics)
    return [_metric_table(name, lines) for name in names]


def _metric_table(name: str, lines: Sequence[Course]) -> Table:
    pairs = [(e, link) for e in lines for link in e.metrics if link.metric == name]
    notes = (LAG, *dict.fromkeys(plain(link.note) for _, link in pairs if link.note))
    columns = (
        Column("site", tuple(plain(each.site) for each, _ in pairs), words=True, fold=12),
        Column("measure", tuple(plain(e.measure) for e, _ in pairs), words=True, role="name"),
        Column("moves together", tuple(_number(link.correlation) for _, link in pairs)),
        Column("p", tuple(chance(link.p) for _, link in pairs)),
        Column("at lag", tuple(_or_dash(link.lag) for _, link in pairs)),
        Column("lead", tuple(_number(link.lead_correlation) for _, link in pairs)),
        Column("p of lead", tuple(chance(link.lead_p) for _, link in pairs)),
    )
    caption = f"{plain(name)}: correlation of what the trends do not explain"
    return Table(caption, non_empty(columns), notes)


def _sudden(each: Course) -> str:
    found = each.sudden
    if found.step is None:
        return "–"
    if found.low is None or found.high is None or found.low == found.high:
        return f"{found.step}"
    return f"{found.step} [{found.low}, {found.high}]"


def chance(p: float | None) -> str:
    """Return a p-value for people to read."""
    return "" if p is None else ("<0.001" if p < 0.001 else f"{p:.3f}")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:+.2f}"


def _or_dash(value: int | None) -> str:
    return "–" if value is None else f"{value}"


COURSES = RecordLayout(
    name="curves",
    tables=course_tables,
    to_dict=Course.to_dict,
    fields=(
        Field("series"),
        *integers("checkpoints", "first", "last"),
        *texts("site", "variant", "group", "measure"),
        Field("steps", "integers"),
        Field("values", "numbers"),
        Field("low", "numbers"),
        Field("high", "numbers"),
        Field("differences", "json"),
        Field("onset", "json"),
        Field("sudden", "json"),
        Field("metrics", "json"),
    ),
)

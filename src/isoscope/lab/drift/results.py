"""What drift does: records of points, fixed points and correlations, and their tables."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import sqrt
from statistics import fmean, stdev
from typing import ClassVar

import msgspec

from isoscope.dataclass import dataclass
from isoscope.display import (
    Column,
    Field,
    Line,
    RecordLayout,
    Results,
    Table,
    TaggedRecord,
    numbers,
    plain,
    short,
    texts,
    whole_line,
)
from isoscope.errors import StoreError
from isoscope.lab.drift.architecture import QUANTITIES, Shape
from isoscope.lab.drift.theory import predict, predict_fixed_point
from isoscope.measures.interval import exact_quantile, mean_and_interval
from isoscope.store import Run
from isoscope.types import Reading

FIXED = "fixed-point"
TITLES = {
    "cosine-in": "cos in",
    "cosine-attention": "cos attention",
    "cosine-out": "cos out",
    "mean-norm-in": "|mean| in",
    "mean-norm-out": "|mean| out",
    "score-spread": "spread",
    "attention-entropy": "entropy",
    "largest-probability": "max p",
}
MEANS = "means over {n} initialisations"
CLOSED = "closed forms"
WITHIN = (
    "means are within {percent:.2g} % of the closed forms (farthest: {title} at |b| = {norm:g})"
)
CLOSE = 0.03  # relative deviation above which a remark looks at the interval
INSIDE = "; the 95 % interval of that mean holds it"
AS_PUBLISHED = (
    "as published: layers are not exchangeable, since each is computed from the one before and "
    "neighbours are alike; p assumes that they are, and is too small"
)


class DriftRecord(TaggedRecord):
    """A result about drift."""


@dataclass(frozen=True)
class DriftPoint(DriftRecord):
    """One quantity of one block at one norm of the drift, over initialisations."""

    what: ClassVar[str] = "point"
    arch: str
    at: str  # where the drift is added
    block: int
    norm: float
    measure: str
    mean: float
    sd: float | None  # over initialisations; None where there is one
    low: float | None  # 95 % interval of the mean
    high: float | None
    next_low: float | None  # 99 % prediction interval of one more initialisation
    next_high: float | None
    n: int  # initialisations
    closed: float | None  # None where there is no closed form
    deviation: float | None  # of the mean, relative to the closed form; None where that is 0


@dataclass(frozen=True)
class DriftFixedPoint(DriftRecord):
    """The norm of a mean that leaves the blocks as it entered, within the norms swept."""

    what: ClassVar[str] = FIXED
    arch: str
    blocks: int
    found: int  # initialisations that have one ...
    n: int  # ... of so many
    mean: float | None
    sd: float | None
    least: float | None
    most: float | None
    closed: float | None  # None: by the closed form there is none


@dataclass(frozen=True)
class DriftCorrelation(DriftRecord):
    """Spearman's correlation of the norm of the mean and the mean cosine, over layers."""

    what: ClassVar[str] = "correlation"
    run: str
    model: str
    layers: int
    spearman: float
    p: float
    permutations: int  # all there are, or random ones
    exact: bool
    as_published: bool = True


class DriftValue(msgspec.Struct, frozen=True):
    """One quantity of one initialisation."""

    arch: str
    at: str
    seed: int
    block: int
    norm: float | None  # None of a fixed point
    measure: str
    value: float


def drift_results(
    values: Sequence[DriftValue], shape: Shape, remarks: Iterable[str] = ()
) -> Results[DriftRecord]:
    """Return points and fixed points of all initialisations."""
    found = [*points_of(values, shape), *fixed_points_of(values, shape)]
    shared = {"width": shape.width, "tokens": shape.tokens}
    return Results(found, DRIFT, shared=shared, remarks=remarks)


def points_of(values: Sequence[DriftValue], shape: Shape) -> Iterator[DriftPoint]:
    """Yield what initialisations have in common, beside the closed forms."""
    groups: dict[tuple[str, str, float, int], dict[str, list[float]]] = {}
    for each in values:
        if each.norm is not None:
            key = (each.arch, each.at, each.norm, each.block)
            groups.setdefault(key, {}).setdefault(each.measure, []).append(each.value)
    for (arch, at, norm, block), measures in groups.items():
        closed = predict(arch, at, norm, shape)[block]
        for measure in QUANTITIES:
            yield _point(arch, at, block, norm, measure, measures[measure], closed[measure])


def _point(
    arch: str,
    at: str,
    block: int,
    norm: float,
    measure: str,
    found: Sequence[float],
    closed: float | None,
) -> DriftPoint:
    (mean, sd, low, high), n = mean_and_interval(found), len(found)
    next_reach = None
    if sd is not None:
        next_reach = exact_quantile(n - 1, outside=0.01) * sd * sqrt(1 + 1 / n)
    return DriftPoint(
        arch=arch,
        at=at,
        block=block,
        norm=norm,
        measure=measure,
        mean=mean,
        sd=sd,
        low=low,
        high=high,
        next_low=None if next_reach is None else mean - next_reach,
        next_high=None if next_reach is None else mean + next_reach,
        n=n,
        closed=closed,
        deviation=None if not closed else mean / closed - 1,
    )


def fixed_points_of(values: Sequence[DriftValue], shape: Shape) -> Iterator[DriftFixedPoint]:
    """Yield the fixed point of each architecture that was fed drifting input."""
    inputs = [each for each in values if each.at == "input"]
    norms = tuple({each.norm for each in inputs if each.norm is not None})
    for arch in dict.fromkeys(each.arch for each in inputs):
        here = [each for each in inputs if each.arch == arch]
        found = [each.value for each in here if each.measure == FIXED]
        yield DriftFixedPoint(
            arch=arch,
            blocks=shape.blocks,
            found=len(found),
            n=len({each.seed for each in here}),
            mean=fmean(found) if found else None,
            sd=stdev(found) if len(found) > 1 else None,
            least=min(found, default=None),
            most=max(found, default=None),
            closed=predict_fixed_point(arch, shape, norms),
        )


# --- as readings --------------------------------------------------------------------------
def reading_of(each: DriftValue, run: str, shape: Shape) -> Reading:
    """Return a value as a run holds it."""
    norm = "" if each.norm is None else f",norm={each.norm!r}"
    group = f"arch={each.arch},at={each.at}{norm},seed={each.seed}"
    site = f"block.{each.block}"
    n, d = shape.tokens, shape.width
    return Reading(run, site, "all", group, None, each.measure, each.value, None, None, n, d)


def value_of(reading: Reading) -> DriftValue:
    """Return the value that a reading of a run holds.

    >>> each = DriftValue("bert", "input", 3, 0, 27.7, "cosine-out", 0.5)
    >>> value_of(reading_of(each, "a", Shape(768, 12, 3072, 512, 1, 0.02))) == each
    True
    """
    parts = dict(part.split("=", 1) for part in reading.group.split(","))
    return DriftValue(
        parts["arch"],
        parts["at"],
        int(parts["seed"]),
        int(reading.site.rpartition(".")[2]),
        float(parts["norm"]) if "norm" in parts else None,
        reading.measure,
        reading.value,
    )


def results_of_run(run: Run) -> tuple[Results[DriftRecord], Shape]:
    """Return the results that a run folder holds, and the sizes of its blocks."""
    try:
        shape = msgspec.convert(run.origin.settings.rest["shape"], Shape)
        return drift_results([value_of(each) for each in run.readings], shape), shape
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise StoreError(
            f"expected initialisations of drift in {run.path.name!r}, got others: {error!r}"[
                :300
            ],
            hint="run isoscope drift again",
            slug="store-damaged",
        ) from error


# --- tables -------------------------------------------------------------------------------
def _tables(found: Results[DriftRecord]) -> tuple[Table, ...]:
    points = [each for each in found if isinstance(each, DriftPoint)]
    tables: list[Table] = []
    for place in dict.fromkeys((each.arch, each.at, each.block) for each in points):
        here = [each for each in points if (each.arch, each.at, each.block) == place]
        tables += _point_tables(here)
    fixed = [each for each in found if isinstance(each, DriftFixedPoint)]
    if fixed:
        tables.append(_fixed_table(fixed))
    correlations = [each for each in found if isinstance(each, DriftCorrelation)]
    if correlations:
        tables.append(_correlation_table(correlations, found.left_out))
    if tables and found.remarks:
        notes = (*tables[-1].notes, *map(plain, found.remarks))
        tables[-1] = replace(tables[-1], notes=notes)
    return tuple(tables)


def _point_tables(points: Sequence[DriftPoint]) -> list[Table]:
    first = points[0]
    named = f"{first.arch}, drift in {first.at}, block {first.block}"
    norms = list(dict.fromkeys(each.norm for each in points))
    cells = {(each.norm, each.measure): each for each in points}
    means = tuple(
        Column(title, tuple(short(cells[norm, name].mean) for norm in norms))
        for name, title in TITLES.items()
    )
    closed = tuple(
        Column(title, tuple(short(cells[norm, name].closed) or "–" for norm in norms))
        for name, title in TITLES.items()
    )
    by = Column("|b|", tuple(f"{norm:g}" for norm in norms))
    off = [(abs(each.deviation), each) for each in points if each.deviation is not None]
    notes: tuple[str, ...] = ()
    if off:
        percent, each = max(off, key=lambda pair: pair[0])
        title = TITLES[each.measure]
        notes = (
            WITHIN.format(percent=100 * percent, title=title, norm=each.norm)
            + (INSIDE if percent > CLOSE and _holds_closed(each) else ""),
        )
    return [
        Table(f"{named}: {MEANS.format(n=first.n)}", (by, *means)),
        Table(f"{named}: {CLOSED}", (by, *closed), notes=notes),
    ]


def _holds_closed(each: DriftPoint) -> bool:
    """Whether the 95 % interval of a mean holds the closed form."""
    if each.low is None or each.high is None or each.closed is None:
        return False
    return each.low <= each.closed <= each.high


def _fixed_table(fixed: Sequence[DriftFixedPoint]) -> Table:
    columns = (
        Column("arch", tuple(each.arch for each in fixed), words=True),
        Column("blocks", tuple(str(each.blocks) for each in fixed)),
        Column("found in", tuple(f"{each.found} of {each.n}" for each in fixed)),
        Column("mean", tuple(short(each.mean) or "–" for each in fixed)),
        Column("sd", tuple(short(each.sd) or "–" for each in fixed)),
        Column(
            "range",
            tuple(
                "–" if each.least is None else f"{short(each.least)} to {short(each.most)}"
                for each in fixed
            ),
        ),
        Column("closed form", tuple(short(each.closed) or "no fixed point" for each in fixed)),
    )
    return Table("fixed point: |b| that leaves the blocks as it entered", columns)


def _correlation_table(found: Sequence[DriftCorrelation], left_out: tuple[str, ...]) -> Table:
    chances = (f"{each.p:.4f}" if each.p >= 1e-4 else "<0.0001" for each in found)
    columns = (
        Column("run", tuple(plain(each.run) for each in found), words=True, fold=12),
        Column("model", tuple(plain(each.model) for each in found), words=True, fold=16),
        Column("layers", tuple(str(each.layers) for each in found)),
        Column("Spearman", tuple(f"{each.spearman:+.3f}" for each in found)),
        Column("p", tuple(chances)),
        Column(
            "permutations",
            tuple(f"{'all ' * each.exact}{each.permutations:,}" for each in found),
        ),
    )
    caption = "drift and anisotropy, as published: |mean| and mean cosine over layers"
    return Table(caption, columns, left_out=tuple(map(plain, left_out)), notes=(AS_PUBLISHED,))


_FIELDS = (
    *texts("what", "arch", "at", "run", "model"),
    *(Field(name, "integer", optional=True) for name in ("width", "tokens", "blocks")),
    *(Field(name, "integer", optional=True) for name in ("block", "layers")),
    Field("norm", "number", optional=True),
    Field("measure"),
    *numbers("mean", "sd", "low", "high", "next_low", "next_high", "least", "most", "closed"),
    *numbers("deviation", "spearman", "p"),
    *(Field(name, "integer", optional=True) for name in ("n", "found", "permutations")),
    Field("exact", "flag", optional=True),
    Field("as_published", "flag", optional=True),
)


def _lines(found: Results[DriftRecord]) -> list[Line]:
    return [whole_line(each, _FIELDS, found.shared) for each in found]


DRIFT = RecordLayout(
    name="drift",
    tables=_tables,
    to_dict=DriftRecord.to_dict,
    fields=_FIELDS,
    lines=_lines,
)

"""What sampling shows of curvature: records of points and exponents, and their tables."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import log
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
    short,
    texts,
    whole_line,
)
from isoscope.errors import StoreError
from isoscope.lab.curvature.manifolds import Surface
from isoscope.lab.curvature.simulation import (
    expect_bias,
    expect_radius,
    predict_radius,
)
from isoscope.measures.interval import mean_and_interval
from isoscope.store import Run
from isoscope.types import Reading

# Quantities that are powers of the radius, and the exponents that are predicted.
EXPONENTS = {"tangent-energy": 2.0, "normal-energy": 4.0, "normal-ratio": 1.0}
TITLES = {
    "tangent-energy": "tangent",
    "normal-energy": "normal",
    "normal-ratio": "ratio",
    "normal-variance": "normal (PCA)",
    "gradient-mixed": "normal share, mixed",
    "gradient-constant": "normal share, constant",
}
OF = {"normal-share": "of energy", "token-normal-share": "mean of tokens"}
COUNTER_EXAMPLE = (
    "normal share, constant: a backward signal that is the same for all rows has no tangent "
    "gradient in a symmetric neighbourhood, however small; the ratio of normal to tangent is "
    "not bounded by O(t)"
)


class CurvatureRecord(TaggedRecord):
    """A result about curvature."""


@dataclass(frozen=True)
class CurvaturePoint(CurvatureRecord):
    """One quantity of one manifold at one radius, or at one bias of frequency, over draws."""

    what: ClassVar[str] = "point"
    manifold: str
    dimension: int
    radius: float  # at a bias, that of the rarest type
    bias: float | None  # None: of one neighbourhood
    measure: str
    mean: float
    sd: float | None  # over draws; None where there is one
    low: float | None  # 95 % interval of the mean
    high: float | None
    n: int  # draws
    closed: float  # exact
    leading: float | None  # prediction to leading order of the radius
    deviation: float | None  # of the mean, relative to the closed form


@dataclass(frozen=True)
class CurvatureExponent(CurvatureRecord):
    """The exponent of the radius with which a quantity falls, at the two smallest radii."""

    what: ClassVar[str] = "exponent"
    manifold: str
    dimension: int
    measure: str
    radius: float  # the smallest
    mean: float
    sd: float | None
    low: float | None
    high: float | None
    n: int
    predicted: float


class CurvatureValue(msgspec.Struct, frozen=True):
    """One quantity of one draw."""

    manifold: str
    dimension: int
    seed: int
    radius: float
    bias: float | None
    measure: str
    value: float


class Sizes(msgspec.Struct, frozen=True):
    """How many types and points a draw has."""

    types: int
    samples: int


Key = tuple[str, int, float, float | None, str]  # manifold, dimension, radius, bias, quantity


def curvature_results(
    values: Sequence[CurvatureValue], sizes: Sizes
) -> Results[CurvatureRecord]:
    """Return points and exponents of all draws."""
    found = [*points_of(values, sizes), *exponents_of(values)]
    shared = {"types": sizes.types, "samples": sizes.samples}
    return Results(found, CURVATURE, shared=shared)


def points_of(values: Sequence[CurvatureValue], sizes: Sizes) -> Iterator[CurvaturePoint]:
    """Yield what draws have in common, beside the closed forms."""
    for key, found in _by_place(values).items():
        name, dimension, radius, bias, measure = key
        surface = Surface.of(name, dimension)
        if bias is None:
            closed = expect_radius(surface, radius)[measure]
            leading = predict_radius(surface, radius)[measure]
        else:
            closed = expect_bias(surface, radius, bias, sizes.types)[measure]
            leading = None
        mean, sd, low, high = mean_and_interval(list(found.values()))
        yield CurvaturePoint(
            manifold=name,
            dimension=dimension,
            radius=radius,
            bias=bias,
            measure=measure,
            mean=mean,
            sd=sd,
            low=low,
            high=high,
            n=len(found),
            closed=closed,
            leading=leading,
            deviation=mean / closed - 1 if closed else None,
        )


def exponents_of(values: Sequence[CurvatureValue]) -> Iterator[CurvatureExponent]:
    """Yield the slope of log quantity over log radius, at the two smallest radii."""
    places = _by_place([each for each in values if each.bias is None])
    for name, dimension in dict.fromkeys((key[0], key[1]) for key in places):
        radii = sorted({key[2] for key in places if key[:2] == (name, dimension)})
        for (small, large), (measure, predicted) in (
            (pair, item) for pair in list(pairwise(radii))[:1] for item in EXPONENTS.items()
        ):
            least, most = (
                places[name, dimension, radius, None, measure] for radius in (small, large)
            )
            width = log(large / small)
            slopes = [log(most[seed] / least[seed]) / width for seed in least]
            mean, sd, low, high = mean_and_interval(slopes)
            yield CurvatureExponent(
                manifold=name,
                dimension=dimension,
                measure=measure,
                radius=small,
                mean=mean,
                sd=sd,
                low=low,
                high=high,
                n=len(slopes),
                predicted=predicted,
            )


def _by_place(values: Sequence[CurvatureValue]) -> dict[Key, dict[int, float]]:
    """Return values by place and quantity, then by seed."""
    found: dict[Key, dict[int, float]] = {}
    for each in values:
        key = (each.manifold, each.dimension, each.radius, each.bias, each.measure)
        found.setdefault(key, {})[each.seed] = each.value
    return found


# --- as readings --------------------------------------------------------------------------
def reading_of(each: CurvatureValue, run: str, sizes: Sizes) -> Reading:
    """Return a value as a run holds it."""
    bias = "" if each.bias is None else f",bias={each.bias!r}"
    group = f"manifold={each.manifold},radius={each.radius!r}{bias},seed={each.seed}"
    n, d = sizes.samples, each.dimension + 1
    return Reading(run, "rows", "all", group, None, each.measure, each.value, None, None, n, d)


def value_of(reading: Reading) -> CurvatureValue:
    """Return the value that a reading of a run holds.

    >>> each = CurvatureValue("sphere", 2, 3, 0.1, None, "normal-ratio", 0.5)
    >>> value_of(reading_of(each, "a", Sizes(10, 100))) == each
    True
    """
    parts = dict(part.split("=", 1) for part in reading.group.split(","))
    return CurvatureValue(
        parts["manifold"],
        reading.d - 1,
        int(parts["seed"]),
        float(parts["radius"]),
        float(parts["bias"]) if "bias" in parts else None,
        reading.measure,
        reading.value,
    )


def results_of_run(run: Run) -> Results[CurvatureRecord]:
    """Return the results that a run folder of draws holds."""
    try:
        sizes = msgspec.convert(run.origin.settings.rest["sizes"], Sizes)
        return curvature_results([value_of(each) for each in run.readings], sizes)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise StoreError(
            f"expected draws of curvature in {run.path.name!r}, got others: {error!r}"[:300],
            hint="do it again with --overwrite",
            slug="store-damaged",
        ) from error


# --- as tables ----------------------------------------------------------------------------
def _tables(found: Results[CurvatureRecord]) -> tuple[Table, ...]:
    points = [each for each in found if isinstance(each, CurvaturePoint)]
    exponents = [each for each in found if isinstance(each, CurvatureExponent)]
    tables: list[Table] = []
    for place in dict.fromkeys((each.manifold, each.dimension) for each in points):
        here = [each for each in points if (each.manifold, each.dimension) == place]
        tables += _radius_tables([each for each in here if each.bias is None])
    if tables:  # once, below the last of them
        tables[-1] = replace(tables[-1], notes=(*tables[-1].notes, COUNTER_EXAMPLE))
    if exponents:
        tables.append(_exponent_table(exponents))
    biased = [each for each in points if each.bias is not None]
    if biased:
        tables.append(_bias_table(biased))
    return tuple(tables)


def _radius_tables(points: Sequence[CurvaturePoint]) -> list[Table]:
    if not points:
        return []
    first = points[0]
    named = f"{first.manifold} of dimension {first.dimension}"
    radii = list(dict.fromkeys(each.radius for each in points))
    cells = {(each.radius, each.measure): each for each in points}
    by = Column("radius", tuple(f"{radius:g}" for radius in radii))
    means, closed = (
        tuple(
            Column(title, tuple(short(getattr(cells[radius, name], what)) for radius in radii))
            for name, title in TITLES.items()
        )
        for what in ("mean", "closed")
    )
    off = [(abs(each.deviation), each) for each in points if each.deviation is not None]
    percent, each = max(off, key=lambda pair: pair[0])
    note = (
        f"means are within {100 * percent:.2g} % of the closed forms (farthest: "
        f"{TITLES[each.measure]} at {each.radius:g})"
    )
    return [
        Table(f"{named}: means over {first.n} draws", (by, *means)),
        Table(f"{named}: closed forms", (by, *closed), notes=(note,)),
    ]


def _exponent_table(found: Sequence[CurvatureExponent]) -> Table:
    columns = (
        Column("manifold", tuple(each.manifold for each in found), words=True),
        Column("quantity", tuple(each.measure for each in found), words=True),
        Column("exponent", tuple(short(each.mean) for each in found)),
        Column("95 % interval", tuple(_interval(each.low, each.high) for each in found)),
        Column("predicted", tuple(f"{each.predicted:g}" for each in found)),
    )
    return Table("exponents of the radius, between the two smallest radii", columns)


def _bias_table(found: Sequence[CurvaturePoint]) -> Table:
    columns = (
        Column("manifold", tuple(each.manifold for each in found), words=True),
        Column("bias", tuple(f"{each.bias:g}" for each in found)),
        Column("normal share", tuple(OF[each.measure] for each in found), words=True),
        Column("mean", tuple(short(each.mean) for each in found)),
        Column("95 % interval", tuple(_interval(each.low, each.high) for each in found)),
        Column("closed form", tuple(short(each.closed) for each in found)),
    )
    caption = (
        "normal share of tokens drawn by frequency: radius ~ frequency^-bias, "
        f"{found[0].radius:g} of the rarest type"
    )
    return Table(caption, columns)


def _interval(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{short(low)} to {short(high)}"


_FIELDS = (
    *texts("what", "manifold"),
    *(Field(name, "integer", optional=True) for name in ("dimension", "types", "samples")),
    *numbers("radius", "bias"),
    Field("measure"),
    *numbers("mean", "sd", "low", "high"),
    Field("n", "integer", optional=True),
    *numbers("closed", "leading", "deviation", "predicted"),
)


def _lines(found: Results[CurvatureRecord]) -> list[Line]:
    return [whole_line(each, _FIELDS, found.shared) for each in found]


CURVATURE = RecordLayout(
    name="curvature",
    tables=_tables,
    to_dict=CurvatureRecord.to_dict,
    fields=_FIELDS,
    lines=_lines,
)

"""The section of curvature: neighbourhoods on manifolds, in front of predictions as lines."""

from collections.abc import Iterator, Sequence
from math import isfinite

import altair as alt
import numpy as np

from isoscope.dataclass import dataclass
from isoscope.display import Column, Table, as_html, short
from isoscope.display.page.section import (
    ROWS,
    Cell,
    Chart,
    ChartSpec,
    Columns,
    Drawn,
    Exhibit,
    Finding,
    Panel,
    Section,
    as_columns,
    run_switch,
)
from isoscope.display.page.theme import SHAPES
from isoscope.errors import StoreError
from isoscope.lab.curvature.manifolds import MANIFOLDS, Surface
from isoscope.lab.curvature.results import (
    CurvatureExponent,
    CurvaturePoint,
    results_of_run,
)
from isoscope.lab.curvature.simulation import expect_radius, predict_radius
from isoscope.lab.curvature.type_results import known_types
from isoscope.lab.curvature.type_section import draw_types, show_types
from isoscope.store import Run
from isoscope.types import Curve

BETWEEN = 24  # radii at which closed forms are computed for a line
LEAD = (
    "Points of neighbourhoods on manifolds of known curvature: u in a ball of the tangent "
    "plane, whose radius stands on the axis, and the height of the manifold above it. Points "
    "of the charts are means over draws with their 95 % intervals, solid lines the closed "
    "forms behind them, dashed lines the prediction to leading order: tangent energy t², "
    "normal energy t⁴, and so a ratio of order t."
)
HOLE = (
    "The ratio of gradients is another matter. A backward signal that goes with a tangent "
    "direction (mixed) has a normal share of order t²; one that is the same for all rows "
    "(constant) has no tangent part in a symmetric neighbourhood, and stays normal at every "
    "radius. Two upper bounds do not bound their ratio."
)


@dataclass(frozen=True, slots=True)
class Drawing:
    """One chart of the section: its quantities, with what each is called, and its axes."""

    name: str
    title: str
    axis: str
    measures: tuple[tuple[str, str], ...]
    over: str = "radius"
    logarithmic: bool = True


DRAWINGS = (
    Drawing(
        "curvature-energy",
        "Tangent and normal energy",
        "mean square",
        (("tangent-energy", "tangent"), ("normal-energy", "normal")),
    ),
    Drawing(
        "curvature-ratio",
        "Normal over tangent",
        "root of the ratio of energies",
        (("normal-ratio", "ratio"),),
    ),
    Drawing(
        "curvature-gradient",
        "Normal share of the gradient",
        "share of squared length",
        (("gradient-constant", "constant"), ("gradient-mixed", "mixed")),
    ),
    Drawing(
        "curvature-bias",
        "Normal share under frequency bias",
        "normal share of tokens",
        (("normal-share", "of energy"), ("token-normal-share", "mean of tokens")),
        over="bias",
        logarithmic=False,
    ),
)
GREY = "#8b93a1"  # of shapes in a legend, on light and on dark pages
NAMES = ("run", "kind", "manifold", "part", "at", "value", "low", "high")


@dataclass(frozen=True, slots=True)
class Predicted:
    """One value of a line behind the points."""

    kind: str  # closed or leading
    manifold: str
    measure: str
    at: float
    value: float


@dataclass(frozen=True, slots=True)
class SimulatedCurves(Curve):
    """The points of a run of draws, and the lines behind them."""

    points: tuple[CurvaturePoint, ...]
    lines: tuple[Predicted, ...]


def draw_curvature(run: Run) -> Drawn:
    """Return what the page of a run shows: of draws, or of the token types of a model."""
    try:
        with np.errstate(all="ignore"):
            known = known_types(run)
            return _draw_draws(run) if known is None else draw_types(run, known)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise StoreError(
            f"cannot draw the curvature of {run.path.name!r}: {error!r}"[:300],
            hint="do it again with --overwrite",
            slug="store-damaged",
        ) from error


def _draw_draws(run: Run) -> Drawn:
    found = results_of_run(run)
    points = tuple(each for each in found if isinstance(each, CurvaturePoint))
    exponents = [each for each in found if isinstance(each, CurvatureExponent)]
    lines = tuple(_lines(points))
    if not all(isfinite(each.value) for each in lines) or not all(
        isfinite(each.mean) and isfinite(each.radius) for each in points
    ):
        raise ValueError("a value is not finite")
    curves = SimulatedCurves("rows", "all", points, lines)
    findings = [*_exponent_findings(exponents), *_gradient_findings(points)]
    return Drawn([curves], findings, noun="points")


def show(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return the charts of draws, then those of token types."""
    parts = [panel for find in (show_draws, show_types) if (panel := find(exhibits))]
    if not parts:
        return None
    return Panel(
        tuple(text for each in parts for text in each.lead),
        tuple(switch for each in parts for switch in each.switches),
        tuple(chart for each in parts for chart in each.charts),
        "".join(each.body for each in parts),
    )


def show_draws(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return the charts of the runs that have draws."""
    runs = [(each.name, c) for each in exhibits for c in each.curves_of(SimulatedCurves)]
    if not runs:
        return None
    manifolds = [
        name for name in MANIFOLDS if any(p.manifold == name for _, c in runs for p in c.points)
    ]
    charts = tuple(
        Chart(
            name=each.name,
            title=each.title,
            spec=_spec(each, manifolds),
            columns=columns,
            alt=f"{each.title} over the {each.over}, one colour per manifold.",
            half=True,
        )
        for each in DRAWINGS
        if (columns := _columns(runs, each))["at"]
    )
    return Panel(
        (LEAD, HOLE), tuple(run_switch([run for run, _ in runs])), charts, _table(runs)
    )


def _exponent_findings(exponents: Sequence[CurvatureExponent]) -> list[Finding]:
    """Return how the ratio of normal to tangent falls with the radius."""
    ratios = [each for each in exponents if each.measure == "normal-ratio"]
    if not ratios:
        return []
    farthest = max(ratios, key=lambda each: abs(each.mean - each.predicted))
    named = ", ".join(f"{each.mean:.3f} on a {each.manifold}" for each in ratios)
    text = f"is how normal over tangent falls with the radius t ({named}); the prediction is t"
    rule = f"between the two smallest radii, means of {farthest.n} draws; the farthest from 1"
    return [Finding(f"t^{farthest.mean:.3f}", text, rule)]


def _gradient_findings(points: Sequence[CurvaturePoint]) -> list[Finding]:
    """Return the normal share of the gradient of a constant signal, at the least radius."""
    here = [each for each in points if each.measure == "gradient-constant"]
    if not here:
        return []
    least = min(here, key=lambda each: each.radius)
    text = (
        f"of the gradient is normal at radius {least.radius:g} where the backward signal is "
        "the same for all rows: the ratio of normal to tangent is not bounded by O(t)"
    )
    rule = f"squared length of the mean of g x, mean of {least.n} draws on a {least.manifold}"
    return [Finding(f"{100 * least.mean:.3g} %", text, rule)]


def _lines(points: Sequence[CurvaturePoint]) -> Iterator[Predicted]:
    """Yield closed forms and predictions at radii between the smallest and the largest."""
    for name, dimension in dict.fromkeys((each.manifold, each.dimension) for each in points):
        here = [each for each in points if each.manifold == name]
        radii = [each.radius for each in here if each.bias is None]
        surface = Surface.of(name, dimension)
        for radius in np.geomspace(min(radii), max(radii), BETWEEN).tolist():
            for kind, find in (("closed", expect_radius), ("leading", predict_radius)):
                for measure, value in find(surface, radius).items():
                    yield Predicted(kind, name, measure, radius, value)
        for each in here:
            if each.bias is not None:
                yield Predicted("closed", name, each.measure, each.bias, each.closed)


def _columns(runs: Sequence[tuple[str, SimulatedCurves]], drawing: Drawing) -> Columns:
    parts = dict(drawing.measures)
    rows: list[tuple[Cell, ...]] = []
    for run, curves in runs:
        for each in curves.points:
            if each.measure in parts:
                at = each.radius if each.bias is None else each.bias
                cells = (each.manifold, parts[each.measure], at, each.mean)
                rows.append((run, "mean", *cells, each.low, each.high))
        for line in curves.lines:
            if line.measure in parts:
                cells = (line.manifold, parts[line.measure], line.at, line.value)
                rows.append((run, line.kind, *cells, None, None))
    return as_columns(NAMES, (dict(zip(NAMES, row, strict=True)) for row in rows))


def _spec(drawing: Drawing, manifolds: Sequence[str]) -> ChartSpec:
    base = alt.Chart(alt.NamedData(ROWS))
    parts = [part for _, part in drawing.measures]
    scale = alt.Scale(type="log", nice=False) if drawing.over == "radius" else alt.Scale()
    title = "radius" if drawing.over == "radius" else "bias: radius ~ frequency^-bias"
    x = alt.X("at:Q", title=title, scale=scale)
    kind = alt.Scale(type="log") if drawing.logarithmic else alt.Scale(zero=True)
    ticks = alt.Axis(tickCount=2) if drawing.logarithmic else alt.Axis()
    y = alt.Y("value:Q", title=drawing.axis, scale=kind, axis=ticks)
    color = alt.Color(
        "manifold:N", scale=alt.Scale(domain=list(manifolds)), legend=alt.Legend(title=None)
    )
    shape = alt.Shape(
        "part:N",
        scale=alt.Scale(domain=parts, range=list(SHAPES[: len(parts)])),
        legend=alt.Legend(title=None, symbolFillColor=GREY, symbolStrokeColor=GREY)
        if len(parts) > 1
        else None,
    )
    tips = [
        alt.Tooltip("manifold:N"),
        alt.Tooltip("part:N", title="quantity"),
        alt.Tooltip("at:Q", title=drawing.over, format=".3~g"),
        alt.Tooltip("value:Q", title="mean", format=".4~g"),
        alt.Tooltip("low:Q", format=".4~g"),
        alt.Tooltip("high:Q", format=".4~g"),
    ]
    closed, leading, means = (
        base.transform_filter(f"datum.kind === '{name}'")
        for name in ("closed", "leading", "mean")
    )
    layers = [
        closed.mark_line(filled=False, opacity=0.6).encode(
            x=x, y=y, color=color, detail=alt.Detail("part:N")
        ),
        leading.mark_line(filled=False, strokeDash=[4, 3], opacity=0.8).encode(
            x=x, y=y, color=color, detail=alt.Detail("part:N")
        ),
        means.transform_filter("datum.low !== null && datum.low > 0")
        .mark_rule(style="whisker")
        .encode(
            x=x,
            y=alt.Y("low:Q", title=drawing.axis, scale=kind),
            y2=alt.Y2("high:Q"),
            color=color,
        ),
        means.mark_point(style="dot", size=45).encode(
            x=x, y=y, color=color, shape=shape, tooltip=tips
        ),
    ]
    chart = alt.layer(*layers, width="container", height=260)
    return {**chart.to_dict(validate=False), "title": {"text": drawing.title}}


def _table(runs: Sequence[tuple[str, SimulatedCurves]]) -> str:
    """Return every point beside its closed form, as a table that folds away."""
    rows = [(run, each) for run, curves in runs for each in curves.points]
    columns = (
        Column("run", tuple(run for run, _ in rows), words=True),
        Column("manifold", tuple(each.manifold for _, each in rows), words=True),
        Column("radius", tuple(f"{each.radius:g}" for _, each in rows)),
        Column("bias", tuple("–" if e.bias is None else f"{e.bias:g}" for _, e in rows)),
        Column("quantity", tuple(each.measure for _, each in rows), words=True),
        Column("mean", tuple(short(each.mean) for _, each in rows)),
        Column("sd", tuple(short(each.sd) for _, each in rows)),
        Column("closed form", tuple(short(each.closed) for _, each in rows)),
        Column("leading order", tuple(short(each.leading) or "–" for _, each in rows)),
    )
    table = as_html(Table("Means and standard deviations over draws", columns))
    return f"<details><summary>All points as a table</summary>{table}</details>"


SECTION = Section("curvature", "Curvature", show, first=True)

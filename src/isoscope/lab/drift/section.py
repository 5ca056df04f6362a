"""The section of drift: means over initialisations, in front of closed forms as lines."""

from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt
import numpy as np

from isoscope.dataclass import dataclass
from isoscope.display import Column, Table, as_html, short
from isoscope.display.page.section import (
    ROWS,
    Cell,
    Chart,
    Columns,
    Drawn,
    Exhibit,
    Finding,
    Panel,
    Section,
    Switch,
    as_columns,
    run_switch,
)
from isoscope.display.page.theme import SHAPES
from isoscope.lab.drift.architecture import ARCHITECTURES, PLACES, QUANTITIES, Shape
from isoscope.lab.drift.results import (
    DriftFixedPoint,
    DriftPoint,
    results_of_run,
)
from isoscope.lab.drift.theory import predict
from isoscope.store import Run
from isoscope.types import Curve

BETWEEN = 14  # norms above zero at which closed forms are computed for a line
TITLES = {
    "cosine-in": ("Cosine of the input", "mean cosine"),
    "cosine-attention": ("Cosine after attention", "mean cosine"),
    "cosine-out": ("Cosine after the block", "mean cosine"),
    "mean-norm-in": ("Norm of the mean, in", "norm"),
    "mean-norm-out": ("Norm of the mean, out", "norm"),
    "score-spread": ("Spread of scores", "standard deviation over keys"),
    "attention-entropy": ("Entropy of attention", "over the log of visible keys"),
    "largest-probability": ("Largest probability", "probability"),
}
LOGARITHMIC = ("score-spread", "largest-probability", "mean-norm-in", "mean-norm-out")
LEAD = (
    "Untrained blocks fed z + b: z is Gaussian, b a fixed direction whose norm stands on the "
    "axis. Points are means over initialisations with their 95 % intervals, lines the closed "
    "forms behind them; where a block has no line, it has no closed form."
)
REVERSAL = (
    "In a post-norm block drift widens the scores and sharpens attention. A norm in front of "
    "attention reverses that: drift takes the place of what differs between rows, and scores "
    "narrow. Rotary positions leave a spread that does not vanish."
)
NAMES = ("run", "kind", "arch", "at", "block", "norm", "value", "low", "high")


@dataclass(frozen=True, slots=True)
class DriftCurves(Curve):
    """The points of a run, the lines behind them, and its fixed points."""

    points: tuple[DriftPoint, ...]
    lines: tuple[tuple[str, str, int, float, str, float], ...]  # as a point, with its value
    fixed: tuple[DriftFixedPoint, ...]


def draw_drift(run: Run) -> Drawn:
    """Return what the page of a drift run shows."""
    found, shape = results_of_run(run)
    points = tuple(each for each in found if isinstance(each, DriftPoint))
    fixed = tuple(each for each in found if isinstance(each, DriftFixedPoint))
    curves = DriftCurves("block", "all", points, tuple(_lines(points, shape)), fixed)
    return Drawn([curves], [*_spread_findings(points), *map(_fixed_finding, fixed)])


def show(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return one chart per quantity over the norm of the drift."""
    runs = [(each.name, c) for each in exhibits for c in each.curves_of(DriftCurves)]
    if not runs:
        return None
    points = [each for _, curves in runs for each in curves.points]
    archs = [name for name in ARCHITECTURES if any(each.arch == name for each in points)]
    charts = tuple(
        Chart(
            name=f"drift-{measure}",
            title=TITLES[measure][0],
            spec=_spec(measure, archs, sorted({each.norm for each in points})),
            columns=_columns(runs, measure),
            alt=f"{TITLES[measure][0]} over the norm of the drift, one line per architecture.",
            half=True,
        )
        for measure in QUANTITIES
        if measure != "mean-norm-in"
    )
    return Panel((LEAD, REVERSAL), _switches(runs), charts, _table(runs))


def _spread_findings(points: Sequence[DriftPoint]) -> list[Finding]:
    """Return how the spread of scores changes from the least drift to the most."""
    found: list[Finding] = []
    for arch, at in dict.fromkeys((each.arch, each.at) for each in points):
        here = sorted(
            (each.norm, each.mean)
            for each in points
            if (each.arch, each.at, each.block, each.measure) == (arch, at, 0, "score-spread")
        )
        if len(here) < 2 or not here[0][1]:
            continue
        (low, before), (high, after) = here[0], here[-1]
        kind = "pre-norm" if ARCHITECTURES[arch].pre_norm else "post-norm"
        text = (
            f"is what drift of norm {high:g} in {at} makes of the spread of scores in an "
            f"untrained {arch} ({kind}): {short(before)} becomes {short(after)}"
        )
        rule = f"mean standard deviation over keys, against drift of norm {low:g}"
        found.append(Finding(f"×{after / before:.3g}", text, rule))
    return found


def _fixed_finding(fixed: DriftFixedPoint) -> Finding:
    rule = f"found in {fixed.found} of {fixed.n} initialisations, within the norms swept"
    if fixed.closed is None or fixed.mean is None:
        text = f"of {fixed.arch}: by the closed form its mean grows at every norm swept"
        return Finding("no fixed point", text, rule)
    text = (
        f"is the norm of the mean that {fixed.arch} returns as it entered; the closed form "
        f"gives {short(fixed.closed)}"
    )
    return Finding(short(fixed.mean), text, rule)


def _lines(
    points: Sequence[DriftPoint], shape: Shape
) -> Iterator[tuple[str, str, int, float, str, float]]:
    """Yield closed forms at the norms of the points and between them."""
    norms = sorted({each.norm for each in points})
    above = [norm for norm in norms if norm > 0]
    if above:
        first = above[0] / 3 if len(above) < len(norms) else above[0]
        norms = sorted({*norms, *np.geomspace(first, above[-1], BETWEEN).tolist()})
    for arch, at in dict.fromkeys((each.arch, each.at) for each in points):
        for norm in norms:
            for block, values in enumerate(predict(arch, at, norm, shape)):
                for measure, value in values.items():
                    if value is not None:
                        yield arch, at, block, norm, measure, value


def _columns(runs: Sequence[tuple[str, DriftCurves]], measure: str) -> Columns:
    rows: list[tuple[Cell, ...]] = []
    for run, curves in runs:
        for each in curves.points:
            if each.measure == measure:
                cells = (each.arch, each.at, str(each.block), each.norm, each.mean)
                rows.append((run, "mean", *cells, each.low, each.high))
        for arch, at, block, norm, name, value in curves.lines:
            if name == measure:
                rows.append((run, "closed", arch, at, str(block), norm, value, None, None))
    return as_columns(NAMES, (dict(zip(NAMES, row, strict=True)) for row in rows))


def _spec(measure: str, archs: Sequence[str], norms: Sequence[float]) -> dict[str, Any]:
    title, axis = TITLES[measure]
    base = alt.Chart(alt.NamedData(ROWS))
    scale = alt.Scale(type="symlog", constant=10, nice=False)
    x = alt.X("norm:Q", title="norm of the drift", scale=scale, axis=alt.Axis(values=norms))
    kind = alt.Scale(type="log") if measure in LOGARITHMIC else alt.Scale(zero=False)
    y = alt.Y("value:Q", title=axis, scale=kind)
    domain = alt.Scale(domain=list(archs))
    color = alt.Color("arch:N", scale=domain, legend=alt.Legend(title=None))
    marks = alt.Scale(domain=list(archs), range=list(SHAPES[: len(archs)]))
    shape = alt.Shape("arch:N", scale=marks)
    tips = [
        alt.Tooltip("arch:N"),
        alt.Tooltip("norm:Q", title="|b|"),
        alt.Tooltip("value:Q", title="mean", format=".4~g"),
        alt.Tooltip("low:Q", format=".4~g"),
        alt.Tooltip("high:Q", format=".4~g"),
    ]
    closed = base.transform_filter("datum.kind === 'closed'")
    means = base.transform_filter("datum.kind === 'mean'")
    layers = [
        closed.mark_line(filled=False, opacity=0.6).encode(x=x, y=y, color=color),
        means.transform_filter("datum.low !== null && datum.low > 0")
        .mark_rule(style="whisker")
        .encode(
            x=x, y=alt.Y("low:Q", title=axis, scale=kind), y2=alt.Y2("high:Q"), color=color
        ),
        means.mark_point(style="dot", size=45).encode(
            x=x, y=y, color=color, shape=shape, tooltip=tips
        ),
    ]
    chart = alt.layer(*layers, width="container", height=260)
    return chart.to_dict(validate=False) | {"title": {"text": title}}


def _switches(runs: Sequence[tuple[str, DriftCurves]]) -> tuple[Switch, ...]:
    points = [each for _, curves in runs for each in curves.points]
    places = [(each, each) for each in PLACES if any(point.at == each for point in points)]
    blocks = [(str(n), f"block {n}") for n in sorted({each.block for each in points})]
    shown = (("at", "Drift in", places), ("block", "Block", blocks))
    return (
        *run_switch([run for run, _ in runs]),
        *(Switch(name, title, tuple(c), c[0][0]) for name, title, c in shown if c),
    )


def _table(runs: Sequence[tuple[str, DriftCurves]]) -> str:
    """Return every point beside its closed form, as a table that folds away."""
    rows = [(run, each) for run, curves in runs for each in curves.points]
    columns = (
        Column("run", tuple(run for run, _ in rows), words=True),
        Column("arch", tuple(each.arch for _, each in rows), words=True),
        Column("drift in", tuple(each.at for _, each in rows), words=True),
        Column("block", tuple(str(each.block) for _, each in rows)),
        Column("|b|", tuple(f"{each.norm:g}" for _, each in rows)),
        Column("quantity", tuple(each.measure for _, each in rows), words=True),
        Column("mean", tuple(short(each.mean) for _, each in rows)),
        Column("sd", tuple(short(each.sd) for _, each in rows)),
        Column("closed form", tuple(short(each.closed) or "–" for _, each in rows)),
    )
    table = as_html(Table("Means and standard deviations over initialisations", columns))
    return f"<details><summary>All points as a table</summary>{table}</details>"


SECTION = Section("drift", "Drift", show, first=True)

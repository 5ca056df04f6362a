"""The section of a sweep: how the task went against how isotropic the layers became."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import altair as alt
import numpy as np

from isoscope.display import Column, Table, as_html, format_value, non_empty, short
from isoscope.display.page.quantity import title_of
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
from isoscope.lab.sweep.results import LAYERS, MEANS, SHOWN, grid_of
from isoscope.site import order_sites
from isoscope.store import Run
from isoscope.types import SweepGrid, SweepWeight

CELL = ("measure", "site", "weight", "seed", "geometry", "metric")
ONE_CLOUD = "resid"  # the site of all layers as one cloud
ISOTROPY = "isoscore-debiased"  # that the verdict is about, and charts begin with
SIGNS = ("weight below 0", "weight 0", "weight above 0")
LEAD = (
    "Each dot is a model that was fine-tuned with one weight of the penalty and one seed: how "
    "it does the task, against the geometry of held-out texts. The line goes through the means "
    "of the weights, in their order; the dashed line is the model before fine-tuning."
)
APART = (
    "Beside it, what each weight changes against weight 0 over the same seeds, with 95 % "
    "intervals that are not corrected for the number of weights; p in the table is corrected."
)
NOT_LEARNT = "not learnt: the runs without penalty do not beat that by a t test at 5 %"
UNKNOWN = "one seed cannot tell whether it was learnt"
PLACES = {LAYERS: "mean over layers", ONE_CLOUD: "all layers as one cloud"}
TITLES = {
    "isoscore-star": "IsoScore*",
    "isoscore-debiased": "IsoScore, debiased",
    "twonn": "TwoNN",
}
BEFORE = "layer profiles are of the model as it came, before fine-tuning"
SURE = 0.05
NamedGrid = tuple[str, SweepGrid]  # the name of a run, and its sweep
_ROOM = alt.Scale(zero=False, nice=False, padding=14)


def show(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return the cells of all sweeps, and the differences between their weights."""
    sweeps = [
        (each.name, grid)
        for each in exhibits
        for grid in each.curves_of(SweepGrid)
        if grid.weights
    ]
    if not sweeps:
        return None
    cells, weights = _columns(sweeps), _differences(sweeps)
    metrics = {grid.metric for _, grid in sweeps}
    metric = metrics.pop() if len(metrics) == 1 else "metric of the task"
    charts = (
        Chart(
            name="sweep-cells",
            title=f"{metric[:1].upper()}{metric[1:]} against isotropy",
            spec=_against(metric),
            columns=cells,
            alt=f"{metric} of each fine-tuned model against the geometry of its layers.",
            half=True,
        ),
        Chart(
            name="sweep-differences",
            title="What each weight changes",
            spec=_by_weight(metric),
            columns=weights,
            alt=f"Difference in {metric} to weight 0, with its interval, one point per weight.",
            half=True,
        ),
    )
    leads = [
        f"{f'{name}: ' if len(sweeps) > 1 else ''}{grid.task} with the penalty {grid.penalty}, "
        f"judged by {grid.metric}; knowing nothing gives {grid.baseline:.3g}{_doubt(grid)}."
        for name, grid in sweeps
    ]
    return Panel(
        (LEAD, APART, *leads), _switches(sweeps, cells), charts, _table(sweeps, metric)
    )


def draw_sweep(run: Run) -> Drawn:
    """Return what the page of a sweep shows beside the readings."""
    grid = grid_of(run)
    found = findings(grid) if grid.weights else []
    return Drawn([grid], found, [BEFORE], noun="tokens")


def findings(grid: SweepGrid) -> list[Finding]:
    """Return the findings of a sweep, for the verdict."""
    found = [_without_penalty(grid, each) for each in grid.weights if each.weight == 0]
    others = [each for each in grid.weights if each.weight != 0 and each.value is not None]
    if others and grid.learnt is not False:
        found.append(_best(grid.penalty, others))
    return found + _range(grid)


def _without_penalty(grid: SweepGrid, each: SweepWeight) -> Finding:
    spread = "" if each.sd is None else f" ± {each.sd:.3f}"
    text = (
        f"is the {grid.metric} of {grid.task} without a penalty; knowing nothing gives "
        f"{grid.baseline:.3g}{_doubt(grid)}"
    )
    rule = f"mean and standard deviation over {each.seeds} seeds"
    return Finding(f"{each.mean:.3f}{spread}", text, rule)


def _best(penalty: str, weights: Sequence[SweepWeight]) -> Finding:
    value, best = max(((each.value or 0.0, each) for each in weights), key=lambda pair: pair[0])
    text = (
        f"is what the best of {len(weights)} weights of {penalty}, {best.weight:g}, "
        f"changes against weight 0"
    )
    rule = "no interval: one seed, or the same difference with each"
    if best.p is not None and best.low is not None and best.high is not None:
        better = ", more than seeds alone would" if value > 0 else ": all of them do harm"
        text += ", which seeds alone may do" if best.p >= SURE else better
        rule = (
            f"paired over seeds, 95 % interval {best.low:.3g} to {best.high:.3g}, "
            f"p = {best.p:.3g} after Holm"
        )
    return Finding(f"{value:+.3f}", text, rule)


def _range(grid: SweepGrid) -> list[Finding]:
    """Return how far apart the lowest and the highest weight are, and where the model began."""
    places = [each for each in grid.cells if (each.measure, each.site) == (ISOTROPY, LAYERS)]
    before = [each.geometry for each in places if each.seed is None]
    weights = sorted({each.weight for each in places if each.seed is not None})
    if len(weights) < 2 or not before:
        return []
    low, high = weights[0], weights[-1]
    least, most = (
        np.mean([e.geometry for e in places if e.seed is not None and e.weight == weight])
        for weight in (low, high)
    )
    text = (
        f"is the debiased IsoScore, the mean over layers, from weight {low:g} to weight "
        f"{high:g}; it was {before[0]:.2g} before fine-tuning"
    )
    rule = f"{ISOTROPY} of held-out texts, mean over layers and seeds"
    return [Finding(f"{least:.2g} to {most:.2g}", text, rule)]


def _columns(sweeps: Sequence[NamedGrid]) -> Columns:
    """Return rows of three kinds: seeds, means over them, and the model before."""
    rows: list[tuple[Cell, ...]] = []
    for run, grid in sweeps:
        means: dict[tuple[str, str, float], list[tuple[float, float]]] = {}
        for each in grid.cells:
            where = (each.measure, each.site)
            if each.seed is None or each.metric is None:
                name = _place_title(*where)
                rows.append((run, "before", *where, 0.0, -1, each.geometry, None, "", name))
                continue
            cells = (*where, each.weight, each.seed, each.geometry, each.metric)
            rows.append((run, "seed", *cells, _sign(each.weight), ""))
            means.setdefault((*where, each.weight), []).append((each.geometry, each.metric))
        for (measure, site, weight), pairs in sorted(means.items()):
            x, y = (float(np.mean(part)) for part in zip(*pairs, strict=True))
            cells = (measure, site, weight, -1, x, y)
            rows.append((run, "mean", *cells, _sign(weight), f"{weight:g}"))
    names = ("run", "kind", *CELL, "sign", "label")
    return as_columns(names, (dict(zip(names, row, strict=True)) for row in rows))


def _differences(sweeps: Sequence[NamedGrid]) -> Columns:
    """Return one row per weight other than 0."""
    rows = [
        {"run": run, "sign": _sign(each.weight), **asdict(each)}
        for run, grid in sweeps
        for each in grid.weights
        if each.weight != 0 and each.value is not None
    ]
    return as_columns(("run", "weight", "value", "low", "high", "p", "sign"), rows)


def _against(metric: str) -> dict[str, Any]:
    base = alt.Chart(alt.NamedData(ROWS))
    axis = alt.Axis(format=".3~g", tickCount=5)
    x = alt.X("geometry:Q", title=" ", scale=_ROOM, axis=axis)
    y = alt.Y("metric:Q", title=metric, scale=_ROOM)
    color = alt.Color(
        "sign:N", scale=alt.Scale(domain=list(SIGNS)), legend=alt.Legend(title=None)
    )
    shape = alt.Shape("sign:N", scale=alt.Scale(domain=list(SIGNS), range=list(SHAPES[:3])))
    tips = [
        alt.Tooltip("run:N"),
        alt.Tooltip("weight:Q"),
        alt.Tooltip("seed:Q"),
        alt.Tooltip("geometry:Q", format=".4~g"),
        alt.Tooltip("metric:Q", title=metric, format=".4~g"),
    ]
    kind = "datum.kind === '{}'".format
    layers = [
        base.transform_filter(kind("before")).mark_rule(style="mark-line").encode(x=x),
        base.transform_filter(kind("mean"))
        .mark_line(style="whisker", filled=False)
        .encode(x=x, y=y, order=alt.Order("weight:Q")),
        base.transform_filter(kind("mean"))
        .mark_point(style="mean", opacity=0.35)
        .encode(x=x, y=y, color=color, shape=shape, tooltip=tips),
        base.transform_filter(kind("seed"))
        .mark_point(style="dot")
        .encode(x=x, y=y, color=color, shape=shape, tooltip=tips),
        base.transform_filter(kind("mean"))
        .mark_text(dx=9, dy=-9, align="left", fontWeight=600)
        .encode(x=x, y=y, text=alt.Text("label:N")),
        # The title of the axis, which changes with the switches.
        base.transform_filter(kind("before"))
        .mark_text(align="right", baseline="top", dy=26)
        .encode(x=alt.value("width"), y=alt.value("height"), text=alt.Text("label:N")),
    ]
    title = f"{metric} against isotropy"
    return _whole(layers, title[:1].upper() + title[1:], "numbers are weights of the penalty")


def _by_weight(metric: str) -> dict[str, Any]:
    base = alt.Chart(alt.NamedData(ROWS))
    x = alt.X("weight:Q", title="weight of the penalty", scale=_ROOM)
    color = alt.Color("sign:N", scale=alt.Scale(domain=list(SIGNS)), legend=None)
    shape = alt.Shape(
        "sign:N", scale=alt.Scale(domain=list(SIGNS), range=list(SHAPES[:3])), legend=None
    )
    title = f"difference in {metric}"
    tips = [
        alt.Tooltip("run:N"),
        alt.Tooltip("weight:Q"),
        alt.Tooltip("value:Q", title="difference", format="+.4~f"),
        alt.Tooltip("low:Q", format="+.4~f"),
        alt.Tooltip("high:Q", format="+.4~f"),
        alt.Tooltip("p:Q", title="p (Holm)", format=".3~g"),
    ]
    layers = [
        base.mark_rule(style="mark-line").encode(y=alt.datum(0)),
        base.mark_rule(style="whisker").encode(
            x=x, y=alt.Y("low:Q", title=title), y2=alt.Y2("high:Q"), color=color
        ),
        base.mark_point(style="mean").encode(
            x=x, y=alt.Y("value:Q", title=title), color=color, shape=shape, tooltip=tips
        ),
    ]
    return _whole(layers, "What each weight changes", "against weight 0, paired by seed")


def _whole(layers: Sequence[Any], title: str, says: str) -> dict[str, Any]:
    chart = alt.layer(*layers, width="container", height=300)
    return chart.to_dict(validate=False) | {"title": {"text": title, "subtitle": says}}


def _switches(sweeps: Sequence[NamedGrid], cells: Columns) -> tuple[Switch, ...]:
    measures = list(dict.fromkeys(map(str, cells["measure"])))
    measures.sort(key=lambda name: name != ISOTROPY)
    there = dict.fromkeys(map(str, cells["site"]))
    sites = [site for site in PLACES if site in there]
    sites += order_sites(site for site in there if site not in PLACES)
    titles = [(name, TITLES.get(name, title_of(name))) for name in measures]
    places = [(site, PLACES.get(site, site)) for site in sites]
    shown = (("measure", "Geometry", titles), ("site", "Layer", places))
    return (
        *run_switch([run for run, _ in sweeps]),
        *(
            Switch(name, title, tuple(choices), choices[0][0])
            for name, title, choices in shown
            if choices
        ),
    )


def _place_title(measure: str, site: str) -> str:
    """Return what the axis of the geometry is called."""
    where = PLACES.get(site, f"at {site}")
    return f"{TITLES.get(measure, title_of(measure))} of held-out texts, {where}"


def _doubt(grid: SweepGrid) -> str:
    if grid.learnt is None:
        return f"; {UNKNOWN}"
    return "" if grid.learnt else f". It was {NOT_LEARNT}"


def _table(sweeps: Sequence[NamedGrid], metric: str) -> str:
    """Return the weights as tables that fold away, with the columns of the command line."""
    rows = [(run, each) for run, grid in sweeps for each in grid.weights]
    apart = [
        ("", "") if each.value is None else format_value(each.value, each.low, each.high)
        for _, each in rows
    ]
    spreads = ("" if each.sd is None else f" ± {each.sd:.4f}" for _, each in rows)
    means = (f"{each.mean:.4f}{sd}" for (_, each), sd in zip(rows, spreads, strict=True))
    columns = (
        Column("run", tuple(run if len(sweeps) > 1 else "" for run, _ in rows), words=True),
        Column("weight", tuple(f"{each.weight:g}" for _, each in rows)),
        Column(metric, tuple(means)),
        Column("difference", tuple(value for value, _ in apart)),
        Column("95 % interval", tuple(interval for _, interval in apart)),
        Column(
            "p (Holm)", tuple("" if each.p is None else f"{each.p:.3f}" for _, each in rows)
        ),
    )
    table = as_html(Table("Mean and standard deviation over seeds", non_empty(columns)))
    shapes = as_html(geometry) if (geometry := _geometry_table(sweeps)).rows else ""
    return f"<details><summary>The weights as a table</summary>{table}{shapes}</details>"


def _geometry_table(sweeps: Sequence[NamedGrid]) -> Table:
    """Return what the table of the command line has: measures by weight, over the layers."""
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for run, grid in sweeps:
        for each in grid.cells:
            if each.site == LAYERS:
                weight = "before" if each.seed is None else f"{each.weight:g}"
                here = found.setdefault((run, weight), {})
                here.setdefault(each.measure, []).append(each.geometry)
    places = sorted(found, key=lambda place: (place[0], place[1] != "before"))
    measures = [name for name in SHOWN if any(name in here for here in found.values())]
    return Table(
        MEANS,
        non_empty(
            (
                Column(
                    "run", tuple(r if len(sweeps) > 1 else "" for r, _ in places), words=True
                ),
                Column("weight", tuple(weight for _, weight in places)),
                *(
                    Column(name, tuple(_mean(found[place].get(name)) for place in places))
                    for name in measures
                ),
            )
        ),
    )


def _mean(values: Sequence[float] | None) -> str:
    return short(float(np.mean(values))) if values else ""


def _sign(weight: float) -> str:
    return SIGNS[int(np.sign(weight)) + 1]


SECTION = Section("sweep", "Sweep", show, first=True)

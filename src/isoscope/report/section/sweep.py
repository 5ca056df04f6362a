"""Sweep: how a task went against how isotropic the layers became, seeds as dots."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import altair as alt
import numpy as np

from isoscope.report.html import as_html
from isoscope.report.number import shown
from isoscope.report.page.exhibit import Exhibit
from isoscope.report.page.measures import titled
from isoscope.report.page.panel import Chart, Columns, Panel, Section, Switch
from isoscope.report.page.profile import ROWS
from isoscope.report.page.theme import SHAPES
from isoscope.report.table import Column, Table
from isoscope.site import order_sites
from isoscope.types import Array

CELLS, WEIGHTS = "sweep-cells", "sweep-weights"
CELL = ("measure", "site", "weight", "seed", "geometry", "metric")
ALL_LAYERS = "resid"  # the site of all layers as one cloud
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
NOT_LEARNT = "not learnt: the runs without penalty do not beat that by two standard errors"
UNKNOWN = "one seed cannot tell whether it was learnt"
TITLES = {
    "isoscore-star": "IsoScore*",
    "isoscore-debiased": "IsoScore, debiased",
    "twonn": "TwoNN",
}
SURE = 0.05
_ROOM = alt.Scale(zero=False, nice=False, padding=14)


def show(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return the cells of all sweeps, and the differences between their weights."""
    held = [each for each in exhibits if each.drawn(WEIGHTS) and each.drawn(CELLS)]
    if not held:
        return None
    cells, weights = columns(held), differences(held)
    metrics = {str(_weights(each)["metric"][0]) for each in held}
    metric = metrics.pop() if len(metrics) == 1 else "metric of the task"
    charts = (
        Chart(
            name="sweep-cells",
            title="Task against isotropy",
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
            alt=f"Difference in {metric} to weight 0, with its interval, one point a weight.",
            half=True,
        ),
    )
    leads = (LEAD, APART, *(_said(each, len(held) > 1) for each in held))
    return Panel(leads, _switches(held, cells), charts, _table(held))


def told(exhibit: Exhibit) -> list[tuple[str, str, str]]:
    """Return the findings of a sweep as figure, text and rule."""
    if not exhibit.drawn(WEIGHTS):
        return []
    table = _weights(exhibit)
    lines = _lines(table)
    plain = [line for line in lines if line["weight"] == 0]
    others = [line for line in lines if line["weight"] != 0 and isfinite(line["value"])]
    found = [_without(table, line) for line in plain]
    if others and table["learnt"][0] != "no":
        found.append(_best(others))
    return found + _moved(exhibit)


def _without(table: Mapping[str, Array], line: Mapping[str, Any]) -> tuple[str, str, str]:
    spread = f" ± {line['sd']:.3f}" if isfinite(line["sd"]) else ""
    text = (
        f"is the {line['metric']} of {line['task']} without a penalty; knowing nothing gives "
        f"{line['baseline']:.3g}{_doubt(table)}"
    )
    rule = f"mean and standard deviation over {line['seeds']} seeds"
    return f"{line['mean']:.3f}{spread}", text, rule


def _best(lines: Sequence[Mapping[str, Any]]) -> tuple[str, str, str]:
    best = max(lines, key=lambda line: line["value"])
    known = isfinite(best["p"])
    text = (
        f"is what the best of {len(lines)} weights of {best['penalty']}, {best['weight']:g}, "
        f"changes against weight 0{_sure(best) if known else ''}"
    )
    rule = (
        f"paired over seeds, 95 % interval {best['low']:.3g} to {best['high']:.3g}, "
        f"p = {best['p']:.3g} after Holm"
    )
    return (
        f"{best['value']:+.3f}",
        text,
        rule if known else "no interval: one seed, or the same difference with each",
    )


def _moved(exhibit: Exhibit) -> list[tuple[str, str, str]]:
    """Say how far the lowest and the highest weight are apart, and where the model began."""
    cells = columns([exhibit])
    wanted = ("isoscore-debiased", ALL_LAYERS)
    places = [
        (kind, weight, geometry)
        for kind, measure, site, weight, geometry in zip(
            *(cells[name] for name in ("kind", "measure", "site", "weight", "geometry")),
            strict=True,
        )
        if (measure, site) == wanted and kind != "seed"
    ]
    means = sorted((weight, geometry) for kind, weight, geometry in places if kind == "mean")
    before = [geometry for kind, _, geometry in places if kind == "before"]
    if len(means) < 2 or not before:
        return []
    (low, least), (high, most) = means[0], means[-1]
    text = (
        f"is the debiased IsoScore of all layers as one cloud, from weight {low:g} to weight "
        f"{high:g}; it was {before[0]:.2g} before fine-tuning"
    )
    rule = "isoscore-debiased at resid of held-out texts, means over seeds"
    return [(f"{least:.2g} to {most:.2g}", text, rule)]


def columns(exhibits: Sequence[Exhibit]) -> Columns:
    """Return rows of three kinds: seeds, means over them, and the model before."""
    names = ("run", "kind", *CELL, "sign", "label")
    table: Columns = {name: [] for name in names}

    def put(*cells: Any) -> None:
        for name, cell in zip(names, cells, strict=True):
            table[name].append(cell)

    for exhibit in exhibits:
        arrays = exhibit.drawn(CELLS)[0].arrays
        rows = list(zip(*(arrays[name].tolist() for name in CELL), strict=True))
        means: dict[tuple[str, str, float], list[tuple[float, float]]] = {}
        for measure, site, weight, seed, geometry, metric in rows:
            if seed < 0:
                put(exhibit.name, "before", measure, site, 0.0, -1, geometry, None, "", "")
                continue
            cells = (measure, site, weight, seed, geometry, metric)
            put(exhibit.name, "seed", *cells, _sign(weight), "")
            means.setdefault((measure, site, weight), []).append((geometry, metric))
        for (measure, site, weight), pairs in sorted(means.items()):
            x, y = (float(np.mean(part)) for part in zip(*pairs, strict=True))
            cells = (measure, site, weight, -1, x, y)
            put(exhibit.name, "mean", *cells, _sign(weight), f"{weight:g}")
    return table


def differences(exhibits: Sequence[Exhibit]) -> Columns:
    """Return one row a weight other than 0."""
    names = ("run", "weight", "value", "low", "high", "p", "sign")
    table: Columns = {name: [] for name in names}
    for exhibit in exhibits:
        for line in _lines(_weights(exhibit)):
            if line["weight"] == 0 or not isfinite(line["value"]):
                continue
            row = {"run": exhibit.name, "sign": _sign(line["weight"])}
            for name in names:
                table[name].append(row.get(name) or _finite(line[name]))
    return table


def _against(metric: str) -> dict[str, Any]:
    base = alt.Chart(alt.NamedData(ROWS))
    x = alt.X("geometry:Q", title="geometry of held-out texts", scale=_ROOM)
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
        .encode(x=x, y=y, order="weight:Q"),
        base.transform_filter(kind("mean"))
        .mark_point(style="mean", opacity=0.35)
        .encode(x=x, y=y, color=color, shape=shape, tooltip=tips),
        base.transform_filter(kind("seed"))
        .mark_point(style="dot")
        .encode(x=x, y=y, color=color, shape=shape, tooltip=tips),
        base.transform_filter(kind("mean"))
        .mark_text(dx=9, dy=-9, align="left", fontWeight=600)
        .encode(x=x, y=y, text="label:N"),
    ]
    return _whole(layers, "Task against isotropy", "numbers are weights of the penalty")


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
            x=x, y=alt.Y("low:Q", title=title), y2="high:Q", color=color
        ),
        base.mark_point(style="mean").encode(
            x=x, y=alt.Y("value:Q", title=title), color=color, shape=shape, tooltip=tips
        ),
    ]
    return _whole(layers, "What each weight changes", "against weight 0, paired by seed")


def _whole(layers: Sequence[Any], title: str, says: str) -> dict[str, Any]:
    chart = alt.layer(*layers).properties(width="container", height=300)
    return chart.to_dict(validate=False) | {"title": {"text": title, "subtitle": says}}


def _switches(exhibits: Sequence[Exhibit], cells: Columns) -> tuple[Switch, ...]:
    found: list[Switch] = []
    if len(exhibits) > 1:
        named = tuple((each.name, each.name) for each in exhibits)
        found.append(Switch("run", "Run", named, named[0][0]))
    measures = list(dict.fromkeys(cells["measure"]))
    named = tuple((name, TITLES.get(name, titled(name))) for name in measures)
    if named:
        found.append(Switch("measure", "Geometry", named, measures[0]))
    sites = order_sites(cells["site"])
    sites.sort(key=lambda site: site != ALL_LAYERS)
    named = tuple((s, "all layers as one cloud" if s == ALL_LAYERS else s) for s in sites)
    if named:
        found.append(Switch("site", "Layer", named, sites[0]))
    return tuple(found)


def _said(exhibit: Exhibit, several: bool) -> str:
    table = _weights(exhibit)
    name = f"{exhibit.name}: " if several else ""
    return (
        f"{name}{table['task'][0]} with the penalty {table['penalty'][0]}, judged by "
        f"{table['metric'][0]}; knowing nothing gives {table['baseline'][0]:.3g}"
        f"{_doubt(table)}."
    )


def _doubt(table: Mapping[str, Array]) -> str:
    learnt = str(table["learnt"][0])
    return {"no": f". It was {NOT_LEARNT}", "unknown": f"; {UNKNOWN}"}.get(learnt, "")


def _sure(line: Mapping[str, Any]) -> str:
    if line["p"] >= SURE:
        return ", which seeds alone may do"
    return ", more than seeds alone would" if line["value"] > 0 else ": all of them do harm"


def _table(exhibits: Sequence[Exhibit]) -> str:
    """Return the weights as a table that folds away."""
    rows: list[tuple[str, ...]] = []
    for exhibit in exhibits:
        for line in _lines(_weights(exhibit)):
            ends = (_finite(line["low"]), _finite(line["high"]))
            apart = shown(line["value"], *ends) if isfinite(line["value"]) else ("", "")
            spread = f" ± {line['sd']:.4f}" if isfinite(line["sd"]) else ""
            chance = f"{line['p']:.3f}" if isfinite(line["p"]) else ""
            metric = f"{line['mean']:.4f}{spread}"
            rows.append((exhibit.name, f"{line['weight']:g}", metric, *apart, chance))
    heads = ("run", "weight", "metric", "difference", "95 % interval", "p (Holm)")
    built = [
        Column(head, tuple(cells), words=head == "run")
        for head, cells in zip(heads, zip(*rows, strict=True), strict=True)
        if any(cells) and (head != "run" or len(exhibits) > 1)
    ]
    table = as_html(Table("Mean and standard deviation over seeds", tuple(built)))
    return f"<details><summary>The weights as a table</summary>{table}</details>"


def _weights(exhibit: Exhibit) -> dict[str, Array]:
    return exhibit.drawn(WEIGHTS)[0].arrays


def _lines(table: Mapping[str, Array]) -> list[dict[str, Any]]:
    rows = zip(*(cells.tolist() for cells in table.values()), strict=True)
    return [dict(zip(table, row, strict=True)) for row in rows]


def _sign(weight: float) -> str:
    return SIGNS[int(np.sign(weight)) + 1]


def _finite(value: Any) -> Any:
    return value if isfinite(value) else None


SECTION = Section("sweep", "Sweep", show)

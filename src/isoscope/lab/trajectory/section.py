"""The section of a trajectory: layers by steps, curves, a slider through steps, the metric."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import expm1, floor, log1p, log10
from typing import Any

import altair as alt
import msgspec
import numpy as np

from isoscope.display import Column, Table, as_html, format_value, non_empty
from isoscope.display.page.quantity import quantities
from isoscope.display.page.section import (
    ROWS,
    Cell,
    Chart,
    ChartSpec,
    Columns,
    Exhibit,
    Panel,
    Section,
    Switch,
    as_columns,
    run_switch,
)
from isoscope.lab.trajectory.curves import THEORIES, TrajectoryCurves
from isoscope.lab.trajectory.results import chance
from isoscope.site import Site, order_sites
from isoscope.types import Array

LEAD = (
    "Every checkpoint read the same documents. The map has one column per checkpoint and one "
    "row per site; the curves have 95 % intervals. The slider moves through the steps and "
    "redraws the layer profile and the spectra. Onset: the first step that differs from the "
    "first, by differences paired by document. Sudden: a jump that a smooth trend does not "
    "explain."
)
FEW = 5  # sites whose curves are shown at first
DIGITS, COARSE = 4, 3  # significant ones of values and of spectra
LOG, LINEAR = "log", "linear"
TICKS = [0, *(10**n for n in range(13))]  # of steps as a logarithm
LONG = 50  # ratio of last to first step from which on steps begin as a logarithm
SMALL = {"expr": "width < 420 ? 4 : 12"}  # dots of curves: there may be 154 of them
MAP_COLUMNS = ("run", "measure", "site", "step", "left", "right", "value", "low", "high")


# --- the panel ----------------------------------------------------------------------------
Named = tuple[str, TrajectoryCurves]


def show(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return the map, curves, profile, spectra, metric and theories of all series."""
    series = [(e.name, curve) for e in exhibits for curve in e.curves_of(TrajectoryCurves)]
    series = [(name, curve) for name, curve in series if len(curve.steps) > 1]
    if not series:
        return None
    sites = order_sites(site for _, curve in series for site in curve.sites)
    cells = _map_columns(series)
    charts = [
        *_map_charts(cells, sites),
        *_spectrum_chart(series, sites),
        *_metric_chart(series),
        *_theory_chart(series),
    ]
    return Panel((LEAD,), _switches(series, sites), tuple(charts), _table(series))


def _map_charts(cells: Columns, sites: Sequence[str]) -> list[Chart]:
    first = Chart(
        name="trajectory-map",
        title="Layers by steps",
        spec=_map_spec(sites, LOG),
        specs={axis: _map_spec(sites, axis) for axis in (LOG, LINEAR)},
        by="axis",
        columns=cells,
        ignores=("step", "site"),
        shows=("measure",),
        alt="One column per checkpoint, one row per site; the colour is the measure.",
        wide=True,
        least_height=120,
    )
    curves = Chart(
        name="trajectory-curves",
        title="Curves of sites",
        spec=_curve_spec(sites, LOG),
        specs={axis: _curve_spec(sites, axis) for axis in (LOG, LINEAR)},
        by="axis",
        columns=cells,
        same_as=first.name,
        ignores=("step",),
        shows=("measure",),
        alt="The measure over steps, a line with its interval for each chosen site.",
        half=True,
    )
    profile = Chart(
        name="trajectory-profile",
        title="Layer profile at the step",
        spec=_profile_spec(sites),
        columns=cells,
        same_as=first.name,
        ignores=("site",),
        shows=("measure", "step"),
        alt="The measure over depth at the step of the slider.",
        half=True,
    )
    return [first, curves, profile]


def _switches(series: Sequence[Named], sites: Sequence[str]) -> tuple[Switch, ...]:
    measures = dict.fromkeys(name for _, curve in series for name in curve.measures)
    steps = sorted({step for _, curve in series for step in curve.steps})
    named = _named(measures)
    after = [step for step in steps if step > 0]
    long = len(after) > 1 and after[-1] / after[0] >= LONG
    metrics = dict.fromkeys(name for _, curve in series for name, _, _ in curve.metrics)
    theories = [
        name for name in THEORIES if any(name == t[0] for _, c in series for t in c.theories)
    ]
    found = [
        *run_switch([name for name, _ in series]),
        Switch("measure", "Measure", named, named[0][0]),
        Switch("axis", "Steps", ((LOG, LOG), (LINEAR, LINEAR)), LOG if long else LINEAR),
        Switch(
            "site",
            "Curves of",
            tuple((site, site) for site in sites),
            ",".join(_few(sites)),
            several=True,
        ),
        Switch(
            "step",
            "Step",
            tuple((str(step), f"{step:,}") for step in steps),
            str(steps[-1]),
            slider=True,
        ),
    ]
    if len(metrics) > 1:
        choices = tuple((name, name) for name in metrics)
        found.append(Switch("metric", "Metric", choices, choices[0][0]))
    if len(theories) > 1:
        choices = tuple((name, THEORIES[name]) for name in theories)
        found.append(Switch("theory", "Theory", choices, theories[0]))
    return tuple(found)


def _named(measures: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return measures with their titles, as the charts of a profile have them."""
    titles: dict[str, str] = {}
    for each in quantities(measures):
        both = {name: title for name, title in each.labelled.values()}
        titles |= both or {each.plain: each.title}
    return tuple((name, titles.get(name, name)) for name in measures)


def _few(sites: Sequence[str]) -> list[str]:
    """Return some sites from the first to the last, evenly."""
    places = np.linspace(0, len(sites) - 1, min(FEW, len(sites))).round()
    return [sites[int(place)] for place in dict.fromkeys(places)]


# --- columns ------------------------------------------------------------------------------
def _map_columns(series: Sequence[Named]) -> Columns:
    """Return one row per measure, step and site."""
    columns: Columns = {name: [] for name in MAP_COLUMNS}
    for run, curve in series:
        edges = _edges(curve.steps)
        there = np.isfinite(curve.values)
        ends_at = _last_of_row(there)
        for m, measure in enumerate(curve.measures):
            for t, step in enumerate(curve.steps):
                for s, site in enumerate(curve.sites):
                    if not there[m, t, s]:
                        continue
                    value, until = _short(curve.values[m, t, s]), edges[ends_at[m, t, s] + 1]
                    ends = (_short(curve.low[m, t, s]), _short(curve.high[m, t, s]))
                    row = (run, measure, site, step, edges[t], until, value, *ends)
                    for name, cell in zip(MAP_COLUMNS, row, strict=True):
                        columns[name].append(cell)
    return columns


def _edges(steps: Sequence[int]) -> list[float]:
    """Return where columns of steps begin and the last one ends: halfway in the logarithm."""
    inner = [float(f"{expm1((log1p(a) + log1p(b)) / 2):.5g}") for a, b in pairwise(steps)]
    first = max(0.0, 2.0 * steps[0] - inner[0])
    return [first, *inner, 2.0 * steps[-1] - inner[-1]]


def _last_of_row(there: Array) -> Array:
    """Return up to which step a cell is drawn: as far as there are others without a gap.

    Later cells cover earlier ones. Cells that only touched would show seams, since on a
    logarithm late columns are narrower than a pixel.
    """
    last = np.empty(there.shape, dtype=int)  # (measures, steps, sites)
    for t in reversed(range(there.shape[1])):
        last[:, t] = t
        if t + 1 < there.shape[1]:
            last[:, t] = np.where(there[:, t + 1], last[:, t + 1], t)
    return last


def _short(value: float, digits: int = DIGITS) -> float | None:
    """Return a number with a few digits; None where it is not finite."""
    number = float(value)
    if not np.isfinite(number):
        return None
    return round(number, digits - 1 - floor(log10(abs(number)))) if number else 0.0


def _spectrum_chart(series: Sequence[Named], sites: Sequence[str]) -> list[Chart]:
    rows = [
        {"run": run, "site": site, "step": step, "rank": int(rank), "value": _short(y, COARSE)}
        for run, curve in series
        for site, step, ranks, values in curve.spectra
        for rank, y in zip(ranks.tolist(), values.tolist(), strict=True)
        if y > 0
    ]
    if not rows:
        return []
    return [
        Chart(
            name="trajectory-spectrum",
            title="Spectra at the step",
            spec=_spectrum_spec(sites),
            columns=as_columns(("run", "site", "step", "rank", "value"), rows),
            shows=("step",),
            alt="Eigenvalues over their average by rank, at the step of the slider.",
            half=True,
        )
    ]


def _metric_chart(series: Sequence[Named]) -> list[Chart]:
    rows: list[dict[str, Cell]] = [
        {"run": run, "metric": name, "step": step, "value": value}
        for run, curve in series
        for name, step, value in curve.metrics
    ]
    if not rows:
        return []
    names = dict.fromkeys(str(row["metric"]) for row in rows)
    says = next(iter(names)) if len(names) == 1 else "as chosen above"
    return [
        Chart(
            name="trajectory-metric",
            title="Metric",
            spec=_line_spec("run", says, LOG),
            specs={axis: _line_spec("run", says, axis) for axis in (LOG, LINEAR)},
            by="axis",
            columns=as_columns(("run", "metric", "step", "value"), rows),
            ignores=("step",),
            shows=("metric",),
            says=says,
            alt="The metric over the same steps.",
            half=True,
        )
    ]


def _theory_chart(series: Sequence[Named]) -> list[Chart]:
    rows: list[dict[str, Cell]] = [
        {"run": run, "theory": name, "line": line, "step": step, "value": _short(value)}
        for run, curve in series
        for name, line, step, value in curve.theories
    ]
    if not rows:
        return []
    return [
        Chart(
            name="trajectory-theory",
            title="Older theories",
            spec=_line_spec("line", "as chosen above", LOG),
            specs={axis: _line_spec("line", "as chosen above", axis) for axis in (LOG, LINEAR)},
            by="axis",
            columns=as_columns(("run", "theory", "line", "step", "value"), rows),
            ignores=("step",),
            shows=("theory",),
            alt="What older theories are about, over the same steps.",
            wide=True,
        )
    ]


# --- specifications -----------------------------------------------------------------------
def _steps(field: str, axis: str) -> alt.X:
    kind = "symlog" if axis == LOG else "linear"
    # an axis with a format of its own would write 1, 10 and 100 as 0k beside 100k
    short = "format(datum.value, '~s')"
    log = axis == LOG
    ticks = alt.Axis(labelExpr=short, values=TICKS) if log else alt.Axis(labelExpr=short)
    return alt.X(
        f"{field}:Q",
        title="step",
        axis=ticks,
        scale=alt.Scale(type=kind, nice=False, zero=False),
    )


def _labels(sites: Sequence[str]) -> str:
    """Return the short label of a site as an expression of the page."""
    names = {site: Site.parse(site).label for site in sites}
    return f"({msgspec.json.encode(names).decode()})[datum.label] || datum.label"


def _map_spec(sites: Sequence[str], axis: str) -> ChartSpec:
    tips = [
        alt.Tooltip("site:N"),
        alt.Tooltip("step:Q", format=",d"),
        alt.Tooltip("value:Q", format=".4~g"),
        alt.Tooltip("low:Q", format=".4~g"),
        alt.Tooltip("high:Q", format=".4~g"),
    ]
    chart = (
        alt.Chart(alt.NamedData(ROWS))
        .mark_rect(opacity=1)
        .encode(
            x=_steps("left", axis),
            x2=alt.X2("right:Q"),
            y=alt.Y(
                "site:O",
                sort=list(reversed(sites)),
                title=None,
                axis=alt.Axis(labelExpr=_labels(sites), ticks=False, domain=False),
            ),
            color=alt.Color(
                "value:Q", scale=alt.Scale(zero=False), legend=alt.Legend(title=None)
            ),
            tooltip=tips,
        )
        .properties(width="container", height=max(160, min(420, 15 * len(sites))))
    )
    return _titled(chart, "Layers by steps", "the deepest site is at the top")


def _curve_spec(sites: Sequence[str], axis: str) -> ChartSpec:
    base = alt.Chart(alt.NamedData(ROWS)).encode(x=_steps("step", axis))
    color = _by_depth(sites)
    y = alt.Y("value:Q", title=None, scale=alt.Scale(zero=False))
    layers = [
        base.mark_area(style="interval").encode(
            y=alt.Y("low:Q", title=None), y2=alt.Y2("high:Q"), color=color
        ),
        base.mark_line().encode(y=y, color=color),
        base.mark_point(style="dot", size=SMALL).encode(
            y=y,
            color=color,
            tooltip=[
                alt.Tooltip("site:N"),
                alt.Tooltip("step:Q", format=",d"),
                alt.Tooltip("value:Q", format=".4~g"),
                alt.Tooltip("low:Q", format=".4~g"),
                alt.Tooltip("high:Q", format=".4~g"),
            ],
        ),
    ]
    chart = alt.layer(*layers, width="container", height=240)
    return _titled(chart, "Curves of sites", "with 95 % intervals")


def _profile_spec(sites: Sequence[str]) -> ChartSpec:
    x = alt.X(
        "site:O",
        sort=list(sites),
        title=None,
        axis=alt.Axis(labelExpr=_labels(sites), labelLimit=90),
    )
    base = alt.Chart(alt.NamedData(ROWS)).encode(x=x, color=alt.Color("run:N", legend=None))
    y = alt.Y("value:Q", title=None, scale=alt.Scale(zero=False))
    layers = [
        base.mark_rule(style="whisker").encode(
            y=alt.Y("low:Q", title=None), y2=alt.Y2("high:Q")
        ),
        base.mark_line().encode(y=y),
        base.mark_point(style="dot").encode(
            y=y, tooltip=[alt.Tooltip("site:N"), alt.Tooltip("value:Q", format=".4~g")]
        ),
    ]
    chart = alt.layer(*layers, width="container", height=240)
    return _titled(chart, "Layer profile at the step", "move the slider")


def _spectrum_spec(sites: Sequence[str]) -> ChartSpec:
    chart = (
        alt.Chart(alt.NamedData(ROWS))
        .mark_line()
        .encode(
            x=alt.X(
                "rank:Q",
                scale=alt.Scale(type="log", nice=False),
                title="rank of the eigenvalue",
            ),
            y=alt.Y(
                "value:Q",
                scale=alt.Scale(type="log"),
                title="eigenvalue / average",
                axis=alt.Axis(format="~g", tickCount=4, grid=False),
            ),
            color=_by_depth(sites),
        )
        .properties(width="container", height=240)
    )
    return _titled(chart, "Spectra at the step", "of the sites that are ticked")


def _line_spec(line: str, says: str, axis: str) -> ChartSpec:
    several = line == "line"
    color = alt.Color(
        f"{line}:N",
        sort=None,  # bands from rare to frequent, as they come
        legend=alt.Legend(title=None, columns=_columns(2, 4), labelLimit=200)
        if several
        else None,
        scale=alt.Scale(scheme="tableau20") if several else alt.Scale(),
    )
    tips = [
        alt.Tooltip(f"{line}:N"),
        alt.Tooltip("step:Q", format=",d"),
        alt.Tooltip("value:Q", format=".4~g"),
    ]
    y = alt.Y("value:Q", title=None, scale=alt.Scale(zero=False))
    base = alt.Chart(alt.NamedData(ROWS)).encode(x=_steps("step", axis), y=y, color=color)
    chart = alt.layer(
        base.mark_line(), base.mark_point(style="dot", size=SMALL).encode(tooltip=tips)
    ).properties(width="container", height=240)
    title = "Older theories" if several else "Metric"
    return _titled(chart, title, says)


def _columns(narrow: int, wide: int) -> Any:
    """Return the columns of a legend by the width of its chart."""
    return {"expr": f"width < 420 ? {narrow} : {wide}"}


def _by_depth(sites: Sequence[str]) -> alt.Color:
    """Return colours from the first site to the last, of those that are shown."""
    return alt.Color(
        "site:O",
        sort=list(sites),
        # without its ends, which are hard to see on a white or a black page
        scale=alt.Scale(scheme=alt.SchemeParams(name="viridis", extent=[0.85, 0.3])),
        legend=alt.Legend(title=None, columns=_columns(3, 6)),
    )


def _titled(chart: Any, title: str, says: str) -> ChartSpec:
    return chart.to_dict(validate=False) | {"title": {"text": title, "subtitle": says}}


# --- the table ----------------------------------------------------------------------------
def _table(series: Sequence[Named]) -> str:
    """Return what changed at each site as a table that folds away."""
    rows = [(run, line) for run, curve in series for line in curve.lines]
    if not rows:
        return ""
    apart = [format_value(*line.change) for _, line in rows]
    columns = (
        Column("run", tuple(run if len(series) > 1 else "" for run, _ in rows), words=True),
        Column("site", tuple(line.site for _, line in rows), words=True),
        Column("measure", tuple(line.measure for _, line in rows), words=True),
        Column("first", tuple(format_value(*line.first)[0] for _, line in rows)),
        Column("last", tuple(format_value(*line.last)[0] for _, line in rows)),
        Column("last - first", tuple(value for value, _ in apart)),
        Column("95 % interval", tuple(interval for _, interval in apart)),
        Column("onset", tuple(_at(line.onset, line.onset_p) for _, line in rows)),
        Column("sudden", tuple(_at(line.sudden, line.sudden_p) for _, line in rows)),
        Column(
            "metric", tuple("; ".join(filter(None, ln.links)) for _, ln in rows), words=True
        ),
    )
    table = as_html(Table("From the first step to the last", non_empty(columns)))
    return f"<details><summary>What changes when, as a table</summary>{table}</details>"


def _at(step: int | None, p: float | None) -> str:
    if step is None:
        return "–"
    return f"{step:,}" + (f" (p {chance(p)})" if p is not None else "")


SECTION = Section("trajectory", "Trajectory", show, first=True)

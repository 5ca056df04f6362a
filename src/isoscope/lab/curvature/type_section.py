"""The part of the section that is about token types: variance against frequency."""

from collections.abc import Sequence
from math import isfinite

import altair as alt

from isoscope.dataclass import dataclass
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
    as_columns,
    run_switch,
    site_switch,
)
from isoscope.display.page.theme import SHAPES
from isoscope.lab.curvature.type_results import KnownTypes, TypePoint, type_points
from isoscope.site import order_sites, output_of
from isoscope.store import Run
from isoscope.types import Curve, Reading

LEAD = (
    "Token types of a model: each small point is a type, by its share of all tokens; large "
    "points are means of half a decade of frequency with 95 % intervals over documents. The "
    "tangent space of a type is that of the leading principal directions of half of its "
    "occurrences, and variance is that of the other half; all types have as many occurrences, "
    "each of another document."
)
SLOPES = (
    "If the normal part were curvature, normal variance would grow with the square of tangent "
    "variance (dashed: exponent 2); if neighbourhoods only differed in scale, in proportion to "
    "it (dotted: exponent 1)."
)
LEAST, MOST = 1e-30, 1e30  # of a variance, on a logarithmic axis
PARTS = (("tangent-variance", "tangent"), ("normal-variance", "normal"))
NAMES = ("run", "site", "kind", "part", "name", "share", "value", "low", "high")
AGAINST = ("run", "site", "kind", "name", "share", "tangent", "normal")


@dataclass(frozen=True, slots=True)
class TypeCurves(Curve):
    """The types of all sites of a run, and the readings of bands of frequency."""

    points: tuple[TypePoint, ...]
    bands: tuple[tuple[str, str, float, float, float | None, float | None], ...]
    # site, measure, middle of the band, value, low, high


def draw_types(run: Run, known: KnownTypes) -> Drawn:
    """Return what the page of a run of token types shows."""
    points = tuple(type_points(run, known))
    if not all(isfinite(e.tangent + e.normal + e.distance) for e in points):
        raise ValueError("a variance is not finite")
    bands = tuple(
        (each.site, each.measure, _middle(each.group), each.value, each.low, each.high)
        for each in run.readings
        if each.group
    )
    if not all(isfinite(middle) and isfinite(value) for _, _, middle, value, *_ in bands):
        raise ValueError("a reading is not finite")
    curves = TypeCurves("rows", "all", points, bands)
    whole = [each for each in run.readings if not each.group]
    return Drawn([curves], _findings(whole), noun="types", readings=whole)


def _middle(group: str) -> float:
    """Return the middle of a band, on a logarithmic axis.

    >>> round(_middle("frequency 1.0e-02 to 1.0e-01"), 4)
    0.0316
    """
    words = group.split()
    return float((float(words[1]) * float(words[3])) ** 0.5)


def _findings(readings: Sequence[Reading]) -> list[Finding]:
    """Return the correlation with frequency and the exponent, at the output."""
    sites = list(dict.fromkeys(each.site for each in readings))
    if not sites:
        return []
    output = output_of(sites) or sites[-1]
    here = {each.measure: each for each in readings if each.site == output}
    found: list[Finding] = []
    for name, text in (
        (
            "frequency-distance-types",
            "is the correlation of log frequency with the distance of occurrences to the "
            f"centroid of their type, at {output}",
        ),
        (
            "tangent-normal",
            f"is the exponent of tangent variance in normal variance at {output}: 2 would be "
            "curvature, 1 neighbourhoods that differ in scale only",
        ),
    ):
        if name in here:
            each = here[name]
            ends = "no interval" if each.low is None else f"{each.low:.2g} to {each.high:.2g}"
            rule = f"over {each.n} token types; 95 % interval over documents: {ends}"
            found.append(Finding(f"{each.value:.2f}", text, rule))
    return found


def show_types(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return the charts of the runs that have token types."""
    runs = [(each.name, c) for each in exhibits for c in each.curves_of(TypeCurves) if c.points]
    if not runs:
        return None
    sites = order_sites(point.site for _, curves in runs for point in curves.points)
    charts = (
        Chart(
            name="curvature-types",
            title="Tangent and normal variance of token types",
            spec=_spec(),
            columns=_columns(runs),
            alt="Tangent and normal variance of token types over their frequency.",
            half=True,
        ),
        Chart(
            name="curvature-exponent",
            title="Normal against tangent variance",
            spec=_against_spec(),
            columns=_against_columns(runs),
            alt="Normal variance of token types over their tangent variance.",
            half=True,
        ),
    )
    switches = (*run_switch([run for run, _ in runs]), site_switch(sites))
    return Panel((LEAD, SLOPES), switches, charts)


def _columns(runs: Sequence[tuple[str, TypeCurves]]) -> Columns:
    rows: list[tuple[Cell, ...]] = []
    parts = dict(PARTS)
    for run, curves in runs:
        for each in curves.points:
            for part, value in (("tangent", each.tangent), ("normal", each.normal)):
                cells = (part, each.name, each.share, float(f"{value:.4g}"), None, None)
                rows.append((run, each.site, "type", *cells))
        for site, measure, middle, *values in curves.bands:
            if measure in parts:
                rows.append((run, site, "band", parts[measure], "", middle, *values))
    return as_columns(NAMES, (dict(zip(NAMES, row, strict=True)) for row in rows))


def _against_columns(runs: Sequence[tuple[str, TypeCurves]]) -> Columns:
    """Return types, and for each run and site lines of exponents 1 and 2 through the middle."""
    rows: list[tuple[Cell, ...]] = []
    for run, curves in runs:
        for site in dict.fromkeys(each.site for each in curves.points):
            here = [
                each
                for each in curves.points
                if each.site == site
                and LEAST < each.tangent < MOST
                and LEAST < each.normal < MOST
            ]
            if not here:
                continue
            rows += [(run, site, "type", e.name, e.share, e.tangent, e.normal) for e in here]
            along, across = (
                sorted(values)[len(here) // 2]
                for values in ([e.tangent for e in here], [e.normal for e in here])
            )
            for kind, power in (("scale", 1), ("curvature", 2)):
                for tangent in (min(e.tangent for e in here), max(e.tangent for e in here)):
                    normal = across * (tangent / along) ** power
                    rows.append((run, site, kind, "", None, tangent, normal))
    return as_columns(AGAINST, (dict(zip(AGAINST, row, strict=True)) for row in rows))


def _spec() -> ChartSpec:
    base = alt.Chart(alt.NamedData(ROWS))
    parts = [part for _, part in PARTS]
    x = alt.X(
        "share:Q",
        title="share of all tokens",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(tickCount=2),
    )
    scale = alt.Scale(type="log", nice=False)
    y = alt.Y("value:Q", title="variance", scale=scale)
    color = alt.Color("part:N", scale=alt.Scale(domain=parts), legend=alt.Legend(title=None))
    shape = alt.Shape(
        "part:N",
        scale=alt.Scale(domain=parts, range=list(SHAPES[:2])),
        legend=alt.Legend(title=None),
    )
    tips = [
        alt.Tooltip("name:N", title="token"),
        alt.Tooltip("part:N"),
        alt.Tooltip("share:Q", format=".2e"),
        alt.Tooltip("value:Q", title="variance", format=".3~g"),
    ]
    types = base.transform_filter("datum.kind === 'type'")
    bands = base.transform_filter("datum.kind === 'band'")
    layers = [
        types.mark_point(size=12, opacity=0.35).encode(
            x=x, y=y, color=color, shape=shape, tooltip=tips
        ),
        bands.mark_line(filled=False).encode(x=x, y=y, color=color),
        bands.transform_filter("datum.low !== null && datum.low > 0")
        .mark_rule(style="whisker")
        .encode(
            x=x,
            y=alt.Y("low:Q", title="variance", scale=scale),
            y2=alt.Y2("high:Q"),
            color=color,
        ),
        bands.mark_point(style="dot", size=55).encode(x=x, y=y, color=color, shape=shape),
    ]
    title = "Tangent and normal variance of token types"
    chart = alt.layer(*layers, width="container", height=300)
    return {**chart.to_dict(validate=False), "title": {"text": title}}


def _against_spec() -> ChartSpec:
    base = alt.Chart(alt.NamedData(ROWS))
    x = alt.X(
        "tangent:Q",
        title="tangent variance",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(tickCount=2),
    )
    y = alt.Y(
        "normal:Q",
        title="normal variance",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(tickCount=2),
    )
    tips = [
        alt.Tooltip("name:N", title="token"),
        alt.Tooltip("share:Q", format=".2e"),
        alt.Tooltip("tangent:Q", format=".3~g"),
        alt.Tooltip("normal:Q", format=".3~g"),
    ]
    lines = [
        base.transform_filter(f"datum.kind === '{kind}'")
        .mark_line(filled=False, strokeDash=dash, opacity=0.8, clip=True, style="isotropic")
        .encode(x=x, y=y)
        for kind, dash in (("scale", [1, 3]), ("curvature", [6, 3]))
    ]
    points = (
        base.transform_filter("datum.kind === 'type'")
        .mark_point(style="dot", size=25, opacity=0.7)
        .encode(x=x, y=y, tooltip=tips)
    )
    chart = alt.layer(*lines, points, width="container", height=300)
    title = "Normal against tangent variance"
    return {**chart.to_dict(validate=False), "title": {"text": title}}

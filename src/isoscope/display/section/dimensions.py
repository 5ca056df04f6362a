"""Dimensions: which of them are far longer than the others, at which sites."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from isoscope.display.html import as_html
from isoscope.display.page.exhibit import Exhibit
from isoscope.display.page.panel import Chart, Columns, Panel, Section, Switch
from isoscope.display.page.profile import ROWS
from isoscope.display.section.layers import VARIANT_NAMES
from isoscope.display.table import Column, Table
from isoscope.site import order_sites
from isoscope.types import VARIANTS, DimensionScores

LEAD = (
    "The outlier score of a dimension is its mean square over the average of all dimensions "
    "at that site: 1 is like the others, 100 has as much of the squared length as a hundred "
    "of them. Each cell shows the largest score of a few neighbouring dimensions."
)
NAMED = 8  # worst dimensions in the table
STANDS_OUT = 5.0  # times the average, from which on a site counts as one where it stands out


def show(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return the heat map, and a table of the worst dimensions."""
    curves = [curve for exhibit in exhibits for curve in exhibit.drawn(DimensionScores)]
    if not curves:
        return None
    variants = [v for v in VARIANTS if any(curve.variant == v for curve in curves)]
    switches: list[Switch] = []
    runs = tuple((e.name, e.name) for e in exhibits if e.drawn(DimensionScores))
    if len(runs) > 1:
        switches.append(Switch("run", "Run", runs, runs[0][0]))
    if len(variants) > 1:
        named = tuple((name, VARIANT_NAMES[name]) for name in variants)
        switches.append(Switch("variant", "Rows", named, variants[0]))
    sites = order_sites(curve.site for curve in curves)
    chart = Chart(
        name="dimensions",
        title="Outlier dimensions",
        spec=spec(sites, max(float(curve.score.max()) for curve in curves)),
        columns=columns(exhibits, variants),
        alt="Outlier score of dimensions, one line a site.",
        wide=True,
    )
    return Panel((LEAD,), tuple(switches), (chart,), as_html(worst(exhibits)))


def spec(sites: Sequence[str], most: float) -> dict[str, Any]:
    """Return the specification of the heat map; a colour means the same in every run."""
    height = max(60, min(14 * len(sites), 900))
    chart = (
        alt.Chart(alt.NamedData(ROWS))
        .mark_rect()
        .encode(
            x=alt.X("first:Q", title="dimension", scale=alt.Scale(nice=False)),
            x2="end:Q",
            y=alt.Y(
                "site:O",
                sort=list(sites),
                title=None,
                axis=alt.Axis(labelSeparation=0, tickCount=40),
            ),
            color=alt.Color(
                "score:Q",
                title="outlier score",
                scale=alt.Scale(
                    type="log",
                    domain=[1, max(most, 10.0)],
                    clamp=True,
                    range="heatmap",
                    interpolate="rgb",
                ),
                legend=alt.Legend(format="~s", tickCount=4),
            ),
            tooltip=[
                alt.Tooltip("site:N"),
                alt.Tooltip("largest:Q", title="dimension"),
                alt.Tooltip("score:Q", format=".3~g"),
            ],
        )
        .properties(width="container", height=height)
    )
    return chart.to_dict(validate=False)


def columns(exhibits: Sequence[Exhibit], variants: Sequence[str]) -> Columns:
    """Return one row per cell of the heat map."""
    names = ("run", "site", "variant", "first", "end", "largest", "score")
    table: Columns = {name: [] for name in names}
    for exhibit in exhibits:
        curves = exhibit.drawn(DimensionScores)
        have = {(curve.site, curve.variant) for curve in curves}
        for curve in curves:
            missing = [v for v in variants if (curve.site, v) not in have]
            for variant in [curve.variant, *(missing if curve.variant == "all" else ())]:
                arrays = (curve.first, curve.end, curve.largest, curve.score)
                for cells in zip(*(array.tolist() for array in arrays), strict=True):
                    row = (exhibit.name, curve.site, variant, *cells)
                    for name, cell in zip(names, row, strict=True):
                        table[name].append(cell)
    # Scores with three digits: what lies below the average is not told apart.
    table["score"] = [max(float(f"{score:.3g}"), 1.0) for score in table["score"]]
    return table


def worst(exhibits: Sequence[Exhibit]) -> Table:
    """Return the dimensions with the largest scores, in rows of all kinds."""
    found: dict[tuple[str, int], list[tuple[float, str]]] = {}
    for exhibit in exhibits:
        for curve in exhibit.drawn(DimensionScores):
            if curve.variant != "all":
                continue
            pairs = zip(curve.largest, curve.score, strict=True)
            for dimension, score in pairs:
                key = (exhibit.name, int(dimension))
                found.setdefault(key, []).append((float(score), curve.site))
    keys = sorted(found, key=lambda key: -max(found[key])[0])
    keys = [key for key in keys if max(found[key])[0] >= STANDS_OUT][:NAMED]
    tops = [max(found[key]) for key in keys]
    counts = [sum(score >= STANDS_OUT for score, _ in found[key]) for key in keys]
    columns = (
        Column("run", tuple(run for run, _ in keys), words=True),
        Column("dimension", tuple(str(dimension) for _, dimension in keys)),
        Column("largest score", tuple(f"{score:.3g}" for score, _ in tops)),
        Column("at", tuple(site for _, site in tops), words=True),
        Column(f"sites with {STANDS_OUT:g} or more", tuple(map(str, counts))),
    )
    kept = columns if len(exhibits) > 1 else columns[1:]
    if not keys:
        text = f"no dimension has {STANDS_OUT:g} times the average mean square at any site"
        return Table("", (Column("worst dimensions", (text,), words=True),))
    return Table("The worst dimensions, all rows", kept)


SECTION = Section("dimensions", "Dimensions", show)

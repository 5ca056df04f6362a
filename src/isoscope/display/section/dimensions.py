"""Dimensions: which of them have far larger values than the others, at which sites."""

from collections.abc import Sequence

import altair as alt

from isoscope.display.formats import as_html
from isoscope.display.page.section import (
    ROWS,
    Cell,
    Chart,
    ChartSpec,
    Exhibit,
    Panel,
    Section,
    as_columns,
    fill_variants,
    run_switch,
    variant_switch,
)
from isoscope.display.table import Column, Table
from isoscope.site import order_sites
from isoscope.types import DimensionScores

LEAD = (
    "The outlier score of a dimension is its mean square divided by the average mean square "
    "of all dimensions at that site: 1 is average, and a dimension with a score of 100 has as "
    "much squared length as 100 average ones. Each cell shows the largest score among a few "
    "neighbouring dimensions."
)
BESIDE = 2  # runs that are shown side by side; of more, one is chosen
TOP = 8  # dimensions in the table
OUTLIER = 5.0  # score from which on the table counts a site
CELLS = ("first", "end", "largest", "score")
COLUMNS = ("run", "site", "variant", *CELLS)


def show(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return the heat map, and a table of the dimensions with the largest scores."""
    curves = [(e.name, curve) for e in exhibits for curve in e.curves_of(DimensionScores)]
    if not curves:
        return None
    variants = list(dict.fromkeys(curve.variant for _, curve in curves))
    runs = list(dict.fromkeys(run for run, _ in curves))
    sites = order_sites(curve.site for _, curve in curves)
    height = max(60, min(14 * len(sites), 900))
    chart = Chart(
        name="dimensions",
        title="Outlier dimensions",
        spec=_spec(sites, max(float(curve.score.max()) for _, curve in curves), height),
        columns=as_columns(COLUMNS, _rows(exhibits, variants)),
        alt="Outlier score of dimensions, one line per site.",
        wide=True,
        least_height=0.55 * height,
    )
    beside = len(runs) == BESIDE
    charts = chart.beside("run", runs) if beside else (chart,)
    switches = (*([] if beside else run_switch(runs)), *variant_switch(variants))
    return Panel((LEAD,), switches, charts, as_html(largest_scores(exhibits)))


def _spec(sites: Sequence[str], most: float, height: int) -> ChartSpec:
    """Return the specification of the heat map; a colour means the same in every run."""
    chart = (
        alt.Chart(alt.NamedData(ROWS))
        .mark_rect()
        .encode(
            x=alt.X("first:Q", title="dimension", scale=alt.Scale(nice=False)),
            x2=alt.X2("end:Q"),
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


def _rows(exhibits: Sequence[Exhibit], variants: Sequence[str]) -> list[dict[str, Cell]]:
    """Return one row per cell of the heat map; a site without variants appears in each."""
    found = [
        # Three digits suffice, and scores below average have the same colour.
        (exhibit.name, curve.site, variant, *cells, max(float(f"{score:.3g}"), 1.0))
        for exhibit in exhibits
        for variant, curve in fill_variants(exhibit.curves_of(DimensionScores), variants)
        for *cells, score in zip(*(getattr(curve, n).tolist() for n in CELLS), strict=True)
    ]
    return [dict(zip(COLUMNS, row, strict=True)) for row in found]


def largest_scores(exhibits: Sequence[Exhibit]) -> Table:
    """Return the dimensions with the largest scores among all rows."""
    found: dict[tuple[str, int], list[tuple[float, str]]] = {}
    for exhibit in exhibits:
        for curve in exhibit.curves_of(DimensionScores):
            if curve.variant == "all":
                for dimension, score in zip(curve.largest, curve.score, strict=True):
                    key = (exhibit.name, int(dimension))
                    found.setdefault(key, []).append((float(score), curve.site))
    tops = {key: max(scores) for key, scores in found.items()}
    keys = sorted((k for k in tops if tops[k][0] >= OUTLIER), key=lambda k: -tops[k][0])[:TOP]
    if not keys:
        text = f"no dimension has {OUTLIER:g} times the average mean square at any site"
        return Table("", (Column("largest outlier scores", (text,), words=True),))
    counts = [sum(score >= OUTLIER for score, _ in found[key]) for key in keys]
    columns = (
        Column("run", tuple(run for run, _ in keys), words=True),
        Column("dimension", tuple(str(dimension) for _, dimension in keys)),
        Column("largest score", tuple(f"{tops[key][0]:.3g}" for key in keys)),
        Column("at", tuple(tops[key][1] for key in keys), words=True),
        Column(f"sites with {OUTLIER:g} or more", tuple(map(str, counts))),
    )
    shown = columns if len(exhibits) > 1 else columns[1:]
    if len({site for scores in found.values() for _, site in scores}) == 1:
        shown = shown[:-2]  # of one site there is nothing to say about where
    return Table("The largest outlier scores, all rows", shown)


SECTION = Section("dimensions", "Dimensions", show)

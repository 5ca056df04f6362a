"""The section of embedding matrices: rows along two singular vectors, by frequency."""

from collections.abc import Sequence

import altair as alt

from isoscope.display.page.section import (
    ROWS,
    Chart,
    ChartSpec,
    Columns,
    Exhibit,
    Panel,
    Section,
    Switch,
)
from isoscope.display.page.theme import SHAPES
from isoscope.site import order_sites
from isoscope.types import MatrixCells

LEAD = (
    "A sample of the rows of each matrix along its first two singular vectors, counted in "
    "cells. Where the run counted tokens, rows are marked by how often their token was seen "
    "in the corpus; of a large vocabulary a part is counted."
)


def show(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return the picture of each matrix, with a choice of which."""
    curves = [curve for exhibit in exhibits for curve in exhibit.curves_of(MatrixCells)]
    if not curves:
        return None
    switches: list[Switch] = []
    runs = tuple((e.name, e.name) for e in exhibits if e.curves_of(MatrixCells))
    if len(runs) > 1:
        switches.append(Switch("run", "Run", runs, runs[0][0]))
    sites = order_sites(curve.site for curve in curves)
    if len(sites) > 1:
        named = tuple((site, site) for site in sites)
        switches.append(Switch("site", "Matrix", named, sites[0]))
    longest = max((curve.bands for curve in curves), key=len)
    table = columns(exhibits)
    there = [band for band in longest if band in table["band"]]
    chart = Chart(
        name="embeddings",
        title="Embedding matrix",
        spec=spec(longest, there),
        columns=table,
        alt="Rows of the embedding matrix along its first two singular vectors.",
        wide=True,
    )
    return Panel((LEAD, _row_counts(exhibits)), tuple(switches), (chart,))


def _row_counts(exhibits: Sequence[Exhibit]) -> str:
    """Return how many rows are shown of how many there are."""
    counts = [
        f"{exhibit.name + ', ' if len(exhibits) > 1 else ''}{curve.site} "
        f"{int(curve.rows.sum()):,} of {curve.of:,}"
        for exhibit in exhibits
        for curve in exhibit.curves_of(MatrixCells)
    ]
    return f"Rows shown: {'; '.join(counts)}."


def spec(bands: Sequence[str], there: Sequence[str]) -> ChartSpec:
    """Return the specification: cells as marks whose area is the number of rows.

    A band has the same colour and shape on every page; the legend has those that are there.
    """
    legend = alt.Legend(title="seen in the corpus", values=list(there))
    legend = legend if len(bands) > 1 else None
    domain = alt.Scale(domain=list(bands), range="ramp" if len(bands) > 1 else "category")
    shapes = [SHAPES[place % len(SHAPES)] for place in range(len(bands))]
    chart = (
        alt.Chart(alt.NamedData(ROWS))
        .mark_point(filled=True, opacity=0.7)
        .encode(
            x=alt.X(
                "x:Q",
                title="first singular vector",
                scale=alt.Scale(zero=False),
                axis=alt.Axis(tickCount=6),
            ),
            y=alt.Y("y:Q", title="second singular vector", scale=alt.Scale(zero=False)),
            size=alt.Size("rows:Q", legend=None),
            color=alt.Color("band:N", scale=domain, legend=legend),
            shape=alt.Shape(
                "band:N", scale=alt.Scale(domain=list(bands), range=shapes), legend=legend
            ),
            tooltip=[alt.Tooltip("band:N"), alt.Tooltip("rows:Q", format=",d")],
        )
        .properties(width="container", height=340)
    )
    return chart.to_dict(validate=False)


def columns(exhibits: Sequence[Exhibit]) -> Columns:
    """Return one row per cell."""
    table: Columns = {name: [] for name in ("x", "y", "rows", "band", "run", "site")}
    for exhibit in exhibits:
        for curve in exhibit.curves_of(MatrixCells):
            bands = [curve.bands[place] for place in curve.band]
            cells = (curve.x.tolist(), curve.y.tolist(), curve.rows.tolist(), bands)
            rows = zip(*cells, strict=True)
            # Frequent ones on top; the last band, of which nothing is known, at the bottom.
            count = len(curve.bands)
            place = {band: (n + 1) % count for n, band in enumerate(curve.bands)}
            for row in sorted(rows, key=lambda row: place[row[3]]):
                for name, cell in zip(table, (*row, exhibit.name, curve.site), strict=True):
                    table[name].append(cell)
    return table


SECTION = Section("embeddings", "Embedding matrices", show)

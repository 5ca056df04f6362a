"""The section of embedding matrices: rows along two singular vectors, by frequency."""

from collections.abc import Sequence

import altair as alt

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
from isoscope.display.page.theme import SHAPES
from isoscope.site import order_sites
from isoscope.types import MatrixCells

COLUMNS: tuple[str, ...] = ("x", "y", "rows", "band", "run", "site")
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
    switches = run_switch([each.name for each in exhibits if each.curves_of(MatrixCells)])
    sites = order_sites(curve.site for curve in curves)
    if len(sites) > 1:
        switches.append(
            Switch("site", "Matrix", tuple((site, site) for site in sites), sites[0])
        )
    counts = "; ".join(
        f"{exhibit.name + ', ' if len(exhibits) > 1 else ''}{curve.site} "
        f"{int(curve.rows.sum()):,} of {curve.of:,}"
        for exhibit in exhibits
        for curve in exhibit.curves_of(MatrixCells)
    )
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
    return Panel((LEAD, f"Rows shown: {counts}."), tuple(switches), (chart,))


def spec(bands: Sequence[str], there: Sequence[str]) -> ChartSpec:
    """Return the specification: cells as marks whose area is the number of rows.

    A band has the same colour and shape on every page; the legend has those that are there.
    """
    several = len(bands) > 1
    legend = alt.Legend(title="seen in the corpus", values=list(there)) if several else None
    domain = alt.Scale(domain=list(bands), range="ramp" if several else "category")
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
    rows: list[dict[str, Cell]] = []
    for exhibit in exhibits:
        for curve in exhibit.curves_of(MatrixCells):
            bands = [curve.bands[place] for place in curve.band]
            cells = zip(
                curve.x.tolist(), curve.y.tolist(), curve.rows.tolist(), bands, strict=True
            )
            # Frequent ones on top; the last band, of which nothing is known, at the bottom.
            count = len(curve.bands)
            place = {band: (n + 1) % count for n, band in enumerate(curve.bands)}
            rows += [
                dict(zip(COLUMNS, (*cell, exhibit.name, curve.site), strict=True))
                for cell in sorted(cells, key=lambda cell: place[cell[3]])
            ]
    return as_columns(COLUMNS, rows)


SECTION = Section("embeddings", "Embedding matrices", show)

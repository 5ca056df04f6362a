"""Causes: how much of the mean cosine is owed to what, over depth."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from isoscope.report.html import as_html
from isoscope.report.page.exhibit import Exhibit
from isoscope.report.page.panel import Chart, Columns, Panel, Section, Switch
from isoscope.report.page.place import ordered, place_of
from isoscope.report.page.profile import ROWS
from isoscope.report.table import Column, Table

ORDER = ("sinks", "dimensions", "frequency", "position", "mean")
LEAD = (
    "The mean cosine taken apart, always in this order: sink tokens, a few rogue dimensions, "
    "token frequency, position, and what is left, the mean that all rows share. Where causes "
    "overlap, the earlier one has it. Shares add up to one."
)


def show(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return the stacked bars, and what stands behind the largest of them."""
    curves = [curve for exhibit in exhibits for curve in exhibit.drawn("causes")]
    if not curves:
        return None
    runs = tuple((e.name, e.name) for e in exhibits if e.drawn("causes"))
    switches: list[Switch] = []
    if len(runs) > 1:
        switches.append(Switch("run", "Run", runs, runs[0][0]))
    parts = list(dict.fromkeys(place_of(curve.site).part for curve in curves))
    parts.sort(key=lambda part: part == "other sites")
    if len(parts) > 1:
        named = tuple((part, part) for part in parts)
        switches.append(Switch("part", "Sites", named, parts[0]))
    labels = [place_of(site).label for site in ordered(curve.site for curve in curves)]
    there = [c for c in ORDER if any(c in curve.arrays["cause"] for curve in curves)]
    chart = Chart(
        name="causes",
        title="Causes of the mean cosine",
        spec=spec(list(dict.fromkeys(labels)), there),
        columns=columns(exhibits),
        alt="Share of the mean cosine owed to each cause, stacked, one bar a site.",
        wide=True,
    )
    return Panel((LEAD,), tuple(switches), (chart,), _details(exhibits))


def spec(labels: Sequence[str], causes: Sequence[str]) -> dict[str, Any]:
    """Return the specification of the bars."""
    chart = (
        alt.Chart(alt.NamedData(ROWS))
        .mark_bar(style="edge")
        .encode(
            x=alt.X("at:O", sort=list(labels), title=None),
            y=alt.Y("share:Q", title="share of the mean cosine", axis=alt.Axis(format=".0%")),
            color=alt.Color(
                "cause:N",
                scale=alt.Scale(domain=list(ORDER), range="ordinal"),
                legend=alt.Legend(title=None, values=list(causes)),
            ),
            order="order:Q",
            tooltip=[
                alt.Tooltip("site:N"),
                alt.Tooltip("cause:N"),
                alt.Tooltip("share:Q", format=".1%"),
                alt.Tooltip("low:Q", format=".1%"),
                alt.Tooltip("high:Q", format=".1%"),
                alt.Tooltip("detail:N", title="what"),
                alt.Tooltip("cosine:Q", title="mean cosine", format=".3~g"),
            ],
        )
        .properties(width="container", height=260)
    )
    return chart.to_dict(validate=False)


def columns(exhibits: Sequence[Exhibit]) -> Columns:
    """Return one row a cause and site."""
    names = ("cause", "share", "low", "high", "detail")
    more = ("run", "site", "at", "part", "order", "cosine")
    table: Columns = {name: [] for name in (*names, *more)}
    for exhibit in exhibits:
        for curve in exhibit.drawn("causes"):
            place = place_of(curve.site)
            cosine = float(curve.arrays["cosine"])
            for cells in zip(*(curve.arrays[name].tolist() for name in names), strict=True):
                row = dict(zip(names, cells, strict=True))
                at = {"site": curve.site, "at": place.label, "part": place.part}
                row |= at | {"run": exhibit.name, "cosine": cosine}
                row["order"] = ORDER.index(row["cause"]) if row["cause"] in ORDER else 9
                for name, cell in row.items():
                    table[name].append(cell)
    return table


def _details(exhibits: Sequence[Exhibit]) -> str:
    """Return the shares as a table that folds away: colour is not their only carrier."""
    rows: list[tuple[str, ...]] = []
    for exhibit in exhibits:
        for curve in exhibit.drawn("causes"):
            found = dict(zip(curve.arrays["cause"], curve.arrays["share"], strict=True))
            shares = [f"{100 * found[c]:.0f} %" if c in found else "" for c in ORDER]
            cosine = f"{float(curve.arrays['cosine']):.3f}"
            rows.append((exhibit.name, curve.site, cosine, *shares))
    heads = ("run", "site", "mean cosine", *ORDER)
    cells = list(zip(*rows, strict=True))
    columns = [
        Column(head, tuple(column), words=head in ("run", "site"))
        for head, column in zip(heads, cells, strict=True)
        if any(column) and (head != "run" or len(exhibits) > 1)
    ]
    table = as_html(Table("", tuple(columns)))
    return f"<details><summary>The shares as a table</summary>{table}</details>"


SECTION = Section("causes", "Causes", show)

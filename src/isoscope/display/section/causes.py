"""Causes: how much of the mean cosine is owed to what, over depth."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

import altair as alt

from isoscope.display.html import as_html
from isoscope.display.page.exhibit import Exhibit
from isoscope.display.page.panel import Chart, Columns, Panel, Section, Switch
from isoscope.display.page.profile import ROWS
from isoscope.display.table import Column, Table
from isoscope.site import Site, order_regions, order_sites
from isoscope.types import CauseShare, CauseShares

ORDER = ("sinks", "dimensions", "frequency", "position", "mean")
LEAD = (
    "The mean cosine taken apart, always in this order: sink tokens, a few dimensions that "
    "stand out, token frequency, position, and what is left, the mean that all rows share. "
    "Where causes overlap, the earlier one has it. Shares add up to one."
)
NEXT_TO_NOTHING = 5e-4  # of the mean cosine: rounding, or half of a tenth of a per cent
LABELLED = 0.08  # share from which on a part of a bar has its number in it
WIDE = 16  # pixels across, below which a bar has no room for numbers


def show(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return the stacked bars, and what stands behind each part of them."""
    curves = [curve for exhibit in exhibits for curve in exhibit.drawn(CauseShares)]
    if not curves:
        return None
    runs = tuple((e.name, e.name) for e in exhibits if e.drawn(CauseShares))
    switches: list[Switch] = []
    if len(runs) > 1:
        switches.append(Switch("run", "Run", runs, runs[0][0]))
    parts = order_regions(Site.parse(curve.site).region for curve in curves)
    if len(parts) > 1:
        named = tuple((part, part) for part in parts)
        switches.append(Switch("part", "Sites", named, parts[0]))
    labels = [Site.parse(site).label for site in order_sites(curve.site for curve in curves)]
    table = columns(exhibits)
    shown = {c for c, share in zip(table["cause"], table["share"], strict=True) if share}
    there = [cause for cause in ORDER if cause in shown]
    chart = Chart(
        name="causes",
        title="Causes of the mean cosine",
        spec=spec(list(dict.fromkeys(labels)), there),
        columns=table,
        alt="Share of the mean cosine owed to each cause, stacked, one bar a site.",
        wide=True,
    )
    return Panel((LEAD, *_untold(curves)), tuple(switches), (chart,), _details(exhibits))


def spec(labels: Sequence[str], causes: Sequence[str]) -> dict[str, Any]:
    """Return the specification of the bars, with the larger shares written in them."""
    base = alt.Chart(alt.NamedData(ROWS)).encode(
        x=alt.X("at:O", sort=list(labels), title=None),
        order=alt.Order("order:Q"),
    )
    bars = base.mark_bar(style="edge").encode(
        y=alt.Y(
            "share:Q",
            stack="zero",
            title="share of the mean cosine, %",
            axis=alt.Axis(labelExpr="round(100 * datum.value)"),
            scale=alt.Scale(nice=False),
        ),
        color=alt.Color(
            "cause:N",
            scale=alt.Scale(domain=list(ORDER), range="ordinal"),
            legend=alt.Legend(title=None, values=list(causes)),
        ),
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
    numbers = base.mark_text(style="in-bar").encode(
        y=alt.Y("share:Q", stack="zero", bandPosition=0.5),
        detail="cause:N",
        text={
            "condition": {
                "test": f"bandwidth('x') >= {WIDE}",
                "field": "text",
                "type": "nominal",
            },
            "value": "",
        },
    )
    return (
        alt.layer(bars, numbers)
        .properties(width="container", height=280)
        .to_dict(validate=False)
    )


def columns(exhibits: Sequence[Exhibit]) -> Columns:
    """Return one row per cause and site."""
    names = ("cause", "share", "low", "high", "detail")
    more = ("run", "site", "at", "part", "order", "cosine", "text")
    table: Columns = {name: [] for name in (*names, *more)}
    for exhibit in exhibits:
        for curve in exhibit.drawn(CauseShares):
            site = Site.parse(curve.site)
            for each in curve.causes:
                share = 0.0 if abs(each.share) < NEXT_TO_NOTHING else each.share
                row = {
                    "cause": each.cause,
                    "share": share,
                    "low": each.low,
                    "high": each.high,
                    "detail": each.detail,
                    "run": exhibit.name,
                    "site": curve.site,
                    "at": site.label,
                    "part": site.region,
                    "order": ORDER.index(each.cause) if each.cause in ORDER else 9,
                    "cosine": curve.cosine,
                    "text": _hundredths(share) if share >= LABELLED else "",
                }
                for name, cell in row.items():
                    table[name].append(cell)
    return table


def _untold(curves: Sequence[CauseShares]) -> list[str]:
    """Return what could not be told, and where, once for each reason."""
    where: dict[str, list[str]] = {}
    for curve in curves:
        for reason in curve.warnings:
            where.setdefault(reason, []).append(curve.site)
    return [
        f"{reason[:1].upper()}{reason[1:]} ({', '.join(dict.fromkeys(sites))})."
        for reason, sites in where.items()
    ]


def _hundredths(share: float) -> str:
    text = f"{100 * share:.0f}"
    return "0" if text == "-0" else text


def _details(exhibits: Sequence[Exhibit]) -> str:
    """Return the shares as a table that folds away: colour is not their only carrier."""
    rows = [
        (exhibit.name, curve.site, f"{curve.cosine:.3f}", *_told(curve.causes))
        for exhibit in exhibits
        for curve in exhibit.drawn(CauseShares)
    ]
    heads = ("run", "site", "mean cosine", *ORDER, "dimensions that stand out", "sinks are")
    words = {"run", "site", *heads[-2:]}
    columns = [
        Column(head, tuple(cells), words=head in words)
        for head, cells in zip(heads, zip(*rows, strict=True), strict=True)
        if any(cells) and (head != "run" or len(exhibits) > 1)
    ]
    table = as_html(Table("Shares in per cent, with 95 % intervals", tuple(columns)))
    return f"<details><summary>The shares as a table</summary>{table}</details>"


def _told(causes: Sequence[CauseShare]) -> list[str]:
    """Return a cell for each cause, then what dimensions and sinks were found."""
    found = {each.cause: each for each in causes}
    named = [
        found[cause].detail if cause in found and found[cause].named else ""
        for cause in ("dimensions", "sinks")
    ]
    return [_cell(found[cause]) if cause in found else "" for cause in ORDER] + named


def _cell(each: CauseShare) -> str:
    share, low, high = each.share, each.low, each.high
    if low is None or high is None or not isfinite(low) or not isfinite(high):
        return _hundredths(share)
    return f"{_hundredths(share)} [{_hundredths(low)}, {_hundredths(high)}]"


SECTION = Section("causes", "Causes", show)

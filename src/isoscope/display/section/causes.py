"""Causes: the share of the mean cosine that each cause explains, over depth."""

from collections.abc import Sequence
from math import isfinite

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
    Switch,
    as_columns,
    run_switch,
)
from isoscope.display.table import Column, Table
from isoscope.site import Site, order_regions, order_sites
from isoscope.types import CAUSE_ORDER, CauseShare, CauseShares

LEAD = (
    "The mean cosine split into causes, always in this order: sink tokens, outlier dimensions, "
    "token frequency, position, and the remainder, the mean that all rows share. Where causes "
    "overlap, the share goes to the earlier one. Shares add up to 1."
)
NEGLIGIBLE = 5e-4  # share of the mean cosine that is rounding: half of 0.1 %
LABELLED = 0.08  # share from which on a part of a bar is labelled with its number
WIDE = 16  # pixels, the narrowest bar that has room for numbers
NAMES = ("cause", "share", "low", "high", "detail")
COLUMNS = (*NAMES, "run", "site", "at", "part", "order", "cosine", "text")


def show(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return the stacked bars, and the same shares as a table."""
    curves = [(e.name, curve) for e in exhibits for curve in e.curves_of(CauseShares)]
    if not curves:
        return None
    switches = run_switch(list(dict.fromkeys(run for run, _ in curves)))
    parts = order_regions(Site.parse(curve.site).region for _, curve in curves)
    if len(parts) > 1:
        switches.append(Switch("part", "Sites", tuple((p, p) for p in parts), parts[0]))
    sites = order_sites(curve.site for _, curve in curves)
    labels = list(dict.fromkeys(Site.parse(site).label for site in sites))
    columns = as_columns(
        COLUMNS, (_row(*pair, each) for pair in curves for each in pair[1].causes)
    )
    shown = {c for c, share in zip(columns["cause"], columns["share"], strict=True) if share}
    chart = Chart(
        name="causes",
        title="Causes of the mean cosine",
        spec=_spec(labels, [cause for cause in CAUSE_ORDER if cause in shown]),
        columns=columns,
        alt="Share of the mean cosine that each cause explains, one stacked bar per site.",
        wide=True,
    )
    lead = (LEAD, *_missing_causes([curve for _, curve in curves]))
    return Panel(lead, tuple(switches), (chart,), _details(curves, len(exhibits) > 1))


def _spec(labels: Sequence[str], causes: Sequence[str]) -> ChartSpec:
    """Return the specification of the bars, the larger shares labelled."""
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
            scale=alt.Scale(domain=list(CAUSE_ORDER), range="ordinal"),
            legend=alt.Legend(title=None, values=list(causes)),
        ),
        tooltip=[
            alt.Tooltip("site:N"),
            alt.Tooltip("cause:N"),
            alt.Tooltip("share:Q", format=".1%"),
            alt.Tooltip("low:Q", format=".1%"),
            alt.Tooltip("high:Q", format=".1%"),
            alt.Tooltip("detail:N", title="detail"),
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


def _row(run: str, curve: CauseShares, each: CauseShare) -> dict[str, Cell]:
    site = Site.parse(curve.site)
    share = 0.0 if abs(each.share) < NEGLIGIBLE else each.share
    return {name: getattr(each, name) for name in NAMES} | {
        "share": share,
        "run": run,
        "site": curve.site,
        "at": site.label,
        "part": site.region,
        "order": CAUSE_ORDER.index(each.cause) if each.cause in CAUSE_ORDER else 9,
        "cosine": curve.cosine,
        "text": _percent(share) if share >= LABELLED else "",
    }


def _missing_causes(curves: Sequence[CauseShares]) -> list[str]:
    """Return a sentence for each reason why a cause could not be determined, with sites."""
    where: dict[str, list[str]] = {}
    for curve in curves:
        for reason in curve.warnings:
            where.setdefault(reason, []).append(curve.site)
    return [
        f"{reason[:1].upper()}{reason[1:]} ({', '.join(dict.fromkeys(sites))})."
        for reason, sites in where.items()
    ]


def _percent(share: float) -> str:
    text = f"{100 * share:.0f}"
    return "0" if text == "-0" else text


def _details(curves: Sequence[tuple[str, CauseShares]], several: bool) -> str:
    """Return the shares as a collapsed table, for readers who cannot see colours."""
    rows = [
        (run, curve.site, f"{curve.cosine:.3f}", *_cells(curve.causes)) for run, curve in curves
    ]
    heads = ("run", "site", "mean cosine", *CAUSE_ORDER, "outlier dimensions", "sink tokens")
    words = {"run", "site", *heads[-2:]}
    columns = [
        Column(head, tuple(cells), words=head in words)
        for head, cells in zip(heads, zip(*rows, strict=True), strict=True)
        if any(cells) and (head != "run" or several)
    ]
    table = as_html(Table("Shares in per cent, with 95 % intervals", tuple(columns)))
    return f"<details><summary>The shares as a table</summary>{table}</details>"


def _cells(causes: Sequence[CauseShare]) -> list[str]:
    """Return one cell per cause, then the dimensions and the sinks by name."""
    found = {each.cause: each for each in causes}
    named = [
        found[cause].detail if cause in found and found[cause].named else ""
        for cause in ("dimensions", "sinks")
    ]
    return [_with_interval(found[c]) if c in found else "" for c in CAUSE_ORDER] + named


def _with_interval(each: CauseShare) -> str:
    share, low, high = each.share, each.low, each.high
    if low is None or high is None or not isfinite(low) or not isfinite(high):
        return _percent(share)
    return f"{_percent(share)} [{_percent(low)}, {_percent(high)}]"


SECTION = Section("causes", "Causes", show)

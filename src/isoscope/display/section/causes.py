"""Causes of the mean cosine over depth, on two scales: by removal and by dependence."""

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
from isoscope.types import (
    CAUSE_ORDER,
    DEPENDENCE,
    REMOVAL,
    CauseShare,
    CauseShares,
    scale_of,
)

LEAD = "Two questions, each with shares of its own, which are not to be added to each other."
REMOVED = (
    "By removal: how much of the mean cosine is owed to few rows or few dimensions? Sinks: by "
    "what share it falls when sink rows are excluded. Dimensions: what share those that stand "
    "out carry; the table has what it really falls to when they are set to zero."
)
DEPENDS = (
    "By dependence: rows of the same token frequency and position have a mean cosine T; how "
    "much of it is lost when the partner of a row is drawn from all rows? Frequency and "
    "position: the part that depends on each, the mean of coming first and last. Mean: the "
    "part that all rows share. These add up to 100 %."
)
BESIDE = 2  # runs that are shown side by side; of more, one is chosen
OF_VECTORS = (
    "What share of the mean cosine the dimensions that stand out carry, and what it really "
    "falls to when they are set to zero. Vectors have no token frequencies and positions to "
    "depend on."
)
NEGLIGIBLE = 5e-4  # share of the mean cosine that is rounding: half of 0.1 %
LABELLED = 0.08  # share from which on a part of a bar is labelled with its number
WIDE = 16  # pixels, the narrowest bar that has room for numbers
NAMES = ("cause", "share", "low", "high", "first", "last", "falls_to", "detail")
OF_ALL = "by removal: % of mean cosine"
PERCENT = alt.Axis(labelExpr="round(100 * datum.value)")
COLUMNS = (*NAMES, "run", "site", "at", "part", "order", "cosine", "text")


def show(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return one chart per scale, and the same shares as tables."""
    curves = [(e.name, curve) for e in exhibits for curve in e.curves_of(CauseShares)]
    if not curves:
        return None
    runs = list(dict.fromkeys(run for run, _ in curves))
    beside = len(runs) == BESIDE
    switches = [] if beside else run_switch(runs)
    parts = order_regions(Site.parse(curve.site).region for _, curve in curves)
    if len(parts) > 1:
        switches.append(Switch("part", "Sites", tuple((p, p) for p in parts), parts[0]))
    sites = order_sites(curve.site for _, curve in curves)
    labels = list(dict.fromkeys(Site.parse(site).label for site in sites))
    charts = [_chart(curves, scale, labels) for scale in (REMOVAL, DEPENDENCE)]
    shown = [
        each
        for chart in charts
        if chart is not None
        for each in (chart.beside("run", runs) if beside else (chart,))
    ]
    leads = [REMOVED, DEPENDS]
    lead = (
        LEAD,
        *(text for text, chart in zip(leads, charts, strict=True) if chart is not None),
        *_missing_causes([curve for _, curve in curves]),
    )
    return Panel(lead, tuple(switches), tuple(shown), _details(curves, len(exhibits) > 1))


def show_on_page(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return the tables alone where there is one site, of which a bar would be no chart."""
    curves = [(e.name, curve) for e in exhibits for curve in e.curves_of(CauseShares)]
    if len({curve.site for _, curve in curves}) != 1:
        return show(exhibits)
    return Panel((OF_VECTORS,), body=_details(curves, len(exhibits) > 1, folded=False))


def _chart(
    curves: Sequence[tuple[str, CauseShares]], scale: str, labels: Sequence[str]
) -> Chart | None:
    """Return the chart of one scale; None where no cause is on it."""
    rows = [
        _row(run, curve, each)
        for run, curve in curves
        for each in curve.causes
        if each.scale == scale
    ]
    if not rows:
        return None
    columns = as_columns(COLUMNS, rows)
    shown = {c for c, share in zip(columns["cause"], columns["share"], strict=True) if share}
    causes = [cause for cause in CAUSE_ORDER if cause in shown]
    if scale == REMOVAL:
        return Chart(
            name="causes-removal",
            title="By removal: share of the mean cosine",
            spec=_side_by_side(labels, causes),
            columns=columns,
            alt="Share of the mean cosine of sinks and of dimensions, one bar each per site.",
            wide=True,
        )
    return Chart(
        name="causes",
        title="By dependence: share of the mean cosine of rows of the same frequency and "
        "position",
        spec=_stacked(labels, causes),
        columns=columns,
        alt="Shares that depend on frequency, on position and on neither, one stacked bar per "
        "site.",
        wide=True,
    )


def _base(labels: Sequence[str]) -> alt.Chart:
    return alt.Chart(alt.NamedData(ROWS)).encode(
        # Only the axis is called so: bars tell the column of that name.
        x=alt.X("at:O", sort=list(labels), axis=alt.Axis(title="site")),
        order=alt.Order("order:Q"),
    )


def _colour(causes: Sequence[str]) -> alt.Color:
    return alt.Color(
        "cause:N",
        scale=alt.Scale(domain=list(CAUSE_ORDER), range="ordinal"),
        legend=alt.Legend(title=None, values=list(causes)),
    )


def _tooltip(*more: alt.Tooltip) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("site:N"),
        alt.Tooltip("cause:N"),
        alt.Tooltip("share:Q", format=".1%"),
        alt.Tooltip("low:Q", format=".1%"),
        alt.Tooltip("high:Q", format=".1%"),
        *more,
        alt.Tooltip("detail:N", title="detail"),
        alt.Tooltip("cosine:Q", title="mean cosine", format=".3~g"),
    ]


def _side_by_side(labels: Sequence[str], causes: Sequence[str]) -> ChartSpec:
    """Return bars beside each other with their intervals: such shares do not add up."""
    base = _base(labels).encode(
        xOffset=alt.XOffset("cause:N", sort=[c for c in CAUSE_ORDER if scale_of(c) == REMOVAL])
    )
    bars = base.mark_bar(style="edge").encode(
        y=alt.Y("share:Q", stack=None, title=OF_ALL, axis=PERCENT),
        color=_colour(causes),
        tooltip=_tooltip(
            alt.Tooltip("falls_to:Q", title="cosine falls to", format=".3~g"),
        ),
    )
    whiskers = base.mark_rule().encode(y=alt.Y("low:Q", title=OF_ALL), y2=alt.Y2("high:Q"))
    return alt.layer(bars, whiskers, width="container", height=200).to_dict(validate=False)


def _stacked(labels: Sequence[str], causes: Sequence[str]) -> ChartSpec:
    """Return stacked bars, the larger shares labelled."""
    base = _base(labels)
    bars = base.mark_bar(style="edge").encode(
        y=alt.Y(
            "share:Q",
            stack="zero",
            title="by dependence: % of T",
            axis=PERCENT,
            scale=alt.Scale(nice=False),
        ),
        color=_colour(causes),
        tooltip=_tooltip(
            alt.Tooltip("first:Q", format=".1%"), alt.Tooltip("last:Q", format=".1%")
        ),
    )
    numbers = base.mark_text(style="in-bar").encode(
        y=alt.Y("share:Q", stack="zero", bandPosition=0.5),
        detail=alt.Detail("cause:N"),
        text={
            "condition": {
                "test": f"bandwidth('x') >= {WIDE}",
                "field": "text",
                "type": "nominal",
            },
            "value": "",
        },
    )
    return alt.layer(bars, numbers, width="container", height=260).to_dict(validate=False)


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


def _details(
    curves: Sequence[tuple[str, CauseShares]], several: bool, *, folded: bool = True
) -> str:
    """Return the shares as tables, for readers who cannot see colours; folded beside charts."""
    captions = {
        REMOVAL: "By removal: shares of the mean cosine in per cent, with 95 % intervals",
        DEPENDENCE: "By dependence: shares of the mean cosine of rows of the same frequency "
        "and position in per cent, with 95 % intervals; in brackets first and last",
    }
    tables = [
        as_html(Table(captions[scale], tuple(_columns(curves, scale, several))))
        for scale in captions
        if any(each.scale == scale for _, curve in curves for each in curve.causes)
    ]
    if not folded:
        return "".join(tables)
    return f"<details><summary>The shares as tables</summary>{''.join(tables)}</details>"


def _columns(
    curves: Sequence[tuple[str, CauseShares]], scale: str, several: bool
) -> list[Column]:
    found = [(run, curve, {each.cause: each for each in curve.causes}) for run, curve in curves]
    columns = [
        Column("run", tuple(run for run, _, _ in found) if several else (), words=True),
        Column("site", tuple(curve.site for _, curve, _ in found), words=True),
        Column("mean cosine", tuple(f"{curve.cosine:.3f}" for _, curve, _ in found)),
    ]
    for name in CAUSE_ORDER:
        if scale_of(name) == scale:
            cells = tuple(_with_interval(here.get(name)) for _, _, here in found)
            columns.append(Column(name, cells))
    if scale == REMOVAL:
        rogue = [here.get("dimensions") for _, _, here in found]
        columns.append(Column("zeroed, falls to", tuple(map(_falls_to, rogue))))
        for head, name in (("outlier dimensions", "dimensions"), ("sink tokens", "sinks")):
            cells = tuple(_named(here.get(name)) for _, _, here in found)
            columns.append(Column(head, cells, words=True))
    return [each for each in columns if any(each.cells)]


def _named(each: CauseShare | None) -> str:
    """Return what is named, without what zeroing it does: that has a column of its own."""
    return each.detail.partition("; zeroed")[0] if each is not None and each.named else ""


def _falls_to(each: CauseShare | None) -> str:
    if each is None or each.falls_to is None:
        return ""
    return f"{round(each.falls_to, 3) + 0.0:.3f}"  # no minus in front of zero


def _with_interval(each: CauseShare | None) -> str:
    if each is None:
        return ""
    text, low, high = _percent(each.share), each.low, each.high
    if low is not None and high is not None and isfinite(low) and isfinite(high):
        text += f" [{_percent(low)}, {_percent(high)}]"
    if each.first is not None and each.last is not None:
        text += f" ({_percent(each.first)}, {_percent(each.last)})"
    return text


SECTION = Section("causes", "Causes", show, show_on_page=show_on_page)

"""Spectrum: the eigenvalues of one site beside those of an isotropic cloud."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from isoscope.display.page.exhibit import Exhibit
from isoscope.display.page.panel import Chart, Columns, Panel, Section, Switch
from isoscope.display.page.profile import ROWS
from isoscope.display.page.theme import DASHES
from isoscope.display.section.layers import VARIANT_NAMES
from isoscope.site import last_of_stream, order_sites
from isoscope.types import VARIANTS, Spectrum

LEAD = (
    "Eigenvalues of the covariance, largest first, each over their average, so that an "
    "isotropic cloud of endless rows is a flat line at 1. The dotted line is the law of "
    "Marchenko and Pastur for an isotropic cloud of the same width and the effective number "
    "of rows: the number of independent rows that would bias tr C² as much as these "
    "documents do. What stands above it is structure, what follows it is noise."
)
HEIGHT = 300
NAMED = 24  # letters of the name of a run beside a mark
MARKS = {"effective-rank": "effective rank", "participation": "participation"}


def show(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return the chart of spectra, with a choice of site and variant."""
    curves = [curve for exhibit in exhibits for curve in exhibit.drawn(Spectrum)]
    if not curves:
        return None
    sites = order_sites(curve.site for curve in curves)
    variants = [v for v in VARIANTS if any(curve.variant == v for curve in curves)]
    output = last_of_stream(sites) or sites[0]
    switches = [Switch("site", "Site", tuple((site, site) for site in sites), output)]
    if len(variants) > 1:
        named = tuple((name, VARIANT_NAMES[name]) for name in variants)
        switches.append(Switch("variant", "Rows", named, variants[0]))
    chart = Chart(
        name="spectrum",
        title="Spectrum",
        spec=spec([exhibit.name for exhibit in exhibits]),
        columns=columns(exhibits, variants),
        alt="Eigenvalues over their average, by rank, on logarithmic axes.",
        wide=True,
    )
    return Panel((LEAD,), tuple(switches), (chart,))


def spec(runs: Sequence[str]) -> dict[str, Any]:
    """Return the specification: rows of kind spectrum, isotropic and mark."""
    base = alt.Chart(alt.NamedData(ROWS))
    several = len(runs) > 1
    legend = alt.Legend(title=None) if several else None
    color = alt.Color("run:N", scale=alt.Scale(domain=list(runs)), legend=legend)
    dashes = [DASHES[place % len(DASHES)] for place in range(len(runs))]
    dash = alt.StrokeDash(
        "run:N", scale=alt.Scale(domain=list(runs), range=dashes), legend=legend
    )
    scale = alt.Scale(type="log", nice=False)
    x = alt.X("rank:Q", scale=scale, title="rank of the eigenvalue", axis=alt.Axis(format="~s"))
    y = alt.Y(
        "value:Q",
        scale=alt.Scale(type="log"),
        title="eigenvalue over average",
        axis=alt.Axis(format="~g", tickCount=4, grid=False),
    )
    tips = [
        alt.Tooltip("run:N"),
        alt.Tooltip("site:N"),
        alt.Tooltip("rank:Q"),
        alt.Tooltip("value:Q", format=".3~g"),
        alt.Tooltip("rows:Q", title="effective rows", format=",.0f"),
    ]
    marks = base.transform_filter("datum.kind == 'mark'")
    layers = [
        base.transform_filter("datum.kind == 'isotropic'")
        .mark_line(style="isotropic-line")
        .encode(x=x, y=y, detail="run:N"),
        base.transform_filter("datum.kind == 'spectrum'")
        .mark_line()
        .encode(x=x, y=y, color=color, strokeDash=dash),
        base.transform_filter("datum.kind == 'spectrum'")
        .mark_point(style="dot", opacity=0, size=60)
        .encode(x=x, y=y, tooltip=tips),
        marks.mark_rule(style="mark-line").encode(x=x, color=color, tooltip=tips[:3]),
        marks.mark_text(angle=270, align="right", dy=-5, dx=-2, baseline="bottom").encode(
            x=x, y=alt.value(0), text="text:N"
        ),
    ]
    return (
        alt.layer(*layers).properties(width="container", height=HEIGHT).to_dict(validate=False)
    )


def columns(exhibits: Sequence[Exhibit], variants: Sequence[str]) -> Columns:
    """Return the points of every spectrum, and where its ranks are marked."""
    names = ("run", "site", "variant", "kind", "rank", "value", "rows", "text")
    table: Columns = {name: [] for name in names}
    for exhibit in exhibits:
        curves = exhibit.drawn(Spectrum)
        have = {(curve.site, curve.variant) for curve in curves}
        for curve in curves:
            alike = [curve.variant]
            if curve.variant == "all":
                alike += [v for v in variants if (curve.site, v) not in have]
            said = f", {exhibit.name[:NAMED]}" if len(exhibits) > 1 else ""
            for variant in alike:
                _append(table, exhibit, curve, variant, said)
    return table


def _append(table: Columns, exhibit: Exhibit, curve: Spectrum, variant: str, of: str) -> None:
    found: list[tuple[str, float, float | None, str]] = []
    for kind, values in (("spectrum", curve.value), ("isotropic", curve.isotropic)):
        pairs = zip(curve.rank, values, strict=True)
        found += [(kind, float(rank), float(value), "") for rank, value in pairs if value > 0]
    for measure, text in MARKS.items():
        reading = exhibit.reading(measure, curve.site, curve.variant)
        if reading is not None and reading.value > 0:
            said = f"{text} {reading.value:.3g}{of}"
            found.append(("mark", float(reading.value), None, said))
    for kind, rank, value, text in found:
        cells = (exhibit.name, curve.site, variant, kind, rank, value, curve.rows, text)
        for name, cell in zip(table, cells, strict=True):
            table[name].append(cell)


SECTION = Section("spectrum", "Spectrum", show)

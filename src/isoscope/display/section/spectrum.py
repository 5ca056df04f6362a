"""Spectrum: the eigenvalues of one site beside those of an isotropic cloud."""

from collections.abc import Sequence

import altair as alt

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
    site_switch,
    variant_switch,
)
from isoscope.display.page.theme import DASHES
from isoscope.site import order_sites
from isoscope.types import SpectrumCurve

LEAD = (
    "Eigenvalues of the covariance, largest first, divided by their average: an isotropic "
    "cloud of infinitely many rows would be a flat line at 1. The dotted line is the "
    "Marchenko-Pastur law for an isotropic cloud of the same width and the effective number of "
    "rows, which is the number of independent rows that would bias tr C² as much as these "
    "documents do. Eigenvalues above the line are structure, those on the line are noise."
)
HEIGHT = 300
LONGEST = 24  # characters of the name of a run beside a mark
NEAR = 1.08  # ratio of two ranks whose marks share their words
MARKS = {"effective-rank": "effective rank", "participation": "participation"}
COLUMNS = ("run", "site", "variant", "kind", "rank", "value", "rows", "text")


def show(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return the chart of spectra, with a choice of site and variant."""
    curves = [curve for exhibit in exhibits for curve in exhibit.curves_of(SpectrumCurve)]
    if not curves:
        return None
    variants = list(dict.fromkeys(curve.variant for curve in curves))
    site = site_switch(order_sites(curve.site for curve in curves))
    chart = Chart(
        name="spectrum",
        title="Spectrum",
        spec=_spec([exhibit.name for exhibit in exhibits]),
        columns=as_columns(COLUMNS, _rows(exhibits, variants)),
        alt="Eigenvalues divided by their average, by rank, on logarithmic axes.",
        wide=True,
    )
    return Panel((LEAD,), (site, *variant_switch(variants)), (chart,))


def _spec(runs: Sequence[str]) -> ChartSpec:
    """Return the specification: rows of kind spectrum, isotropic and mark."""
    base = alt.Chart(alt.NamedData(ROWS))
    legend = alt.Legend(title=None) if len(runs) > 1 else None
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
        title="eigenvalue / average",
        axis=alt.Axis(format="~g", tickCount=4, grid=False),
    )
    tooltip = [
        alt.Tooltip("run:N"),
        alt.Tooltip("site:N"),
        alt.Tooltip("rank:Q"),
        alt.Tooltip("value:Q", format=".3~g"),
        alt.Tooltip("rows:Q", title="effective rows", format=",.0f"),
    ]
    spectra = base.transform_filter("datum.kind == 'spectrum'")
    marks = base.transform_filter("datum.kind == 'mark'")
    layers = [
        base.transform_filter("datum.kind == 'isotropic'")
        .mark_line(style="isotropic-line")
        .encode(x=x, y=y, detail=alt.Detail("run:N")),
        spectra.mark_line().encode(x=x, y=y, color=color, strokeDash=dash),
        spectra.mark_point(style="dot", opacity=0, size=60).encode(x=x, y=y, tooltip=tooltip),
        marks.mark_rule(style="mark-line").encode(x=x, color=color, tooltip=tooltip[:3]),
    ]
    # Runs that are alike have marks side by side: every other one is named from below, and on
    # the other side of its mark.
    for names, below in ((runs[::2], False), (runs[1::2], True)):
        if names:
            text = marks.transform_filter(
                alt.FieldOneOfPredicate(field="run", oneOf=[*names])
            ).mark_text(
                angle=270,
                align="left" if below else "right",
                baseline="top" if below else "bottom",
                dx=2 if below else -2,
                dy=5 if below else -5,
            )
            at = alt.value(HEIGHT if below else 0)
            layers.append(text.encode(x=x, y=at, text=alt.Text("text:N")))
    return alt.layer(*layers, width="container", height=HEIGHT).to_dict(validate=False)


def _rows(exhibits: Sequence[Exhibit], variants: Sequence[str]) -> list[dict[str, Cell]]:
    """Return the points of every spectrum, and the ranks that are marked."""
    several = len(exhibits) > 1
    found = [
        (exhibit.name, curve.site, variant, *point, curve.rows, text)
        for exhibit in exhibits
        for variant, curve in fill_variants(exhibit.curves_of(SpectrumCurve), variants)
        for *point, text in _points(exhibit, curve, several)
    ]
    return [dict(zip(COLUMNS, row, strict=True)) for row in found]


def _points(
    exhibit: Exhibit, curve: SpectrumCurve, several: bool
) -> list[tuple[str, float, float | None, str]]:
    """Return kind, rank, value and text of each mark."""
    found: list[tuple[str, float, float | None, str]] = []
    for kind, values in (("spectrum", curve.value), ("isotropic", curve.isotropic)):
        pairs = zip(curve.rank, values, strict=True)
        found += [(kind, float(rank), float(value), "") for rank, value in pairs if value > 0]
    run = f", {exhibit.name[:LONGEST]}" if several else ""
    marks: list[tuple[float, str]] = []
    for measure, name in MARKS.items():
        reading = exhibit.estimate(measure, curve.site, curve.variant)
        if reading is not None and reading.value > 0:
            form = "" if reading.measure == measure else "debiased "
            marks.append((float(reading.value), f"{form}{name} {reading.value:.3g}"))
    if len(marks) > 1 and max(marks)[0] < NEAR * min(marks)[0]:  # words would lie on words
        text = " and ".join(text for _, text in marks)
        marks = [(marks[0][0], text), *((rank, "") for rank, _ in marks[1:])]
    found += [("mark", rank, None, f"{text}{run}" if text else "") for rank, text in marks]
    return found


SECTION = Section("spectrum", "Spectrum", show)

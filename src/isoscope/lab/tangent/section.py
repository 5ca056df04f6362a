"""The section of gradients: ratios by layer and step against three controls, and concepts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from isoscope.accumulate import FREQUENCIES
from isoscope.display import Column, Table, as_html, plain, short
from isoscope.display.page.section import (
    ROWS,
    Cell,
    Chart,
    Drawn,
    Exhibit,
    Finding,
    Panel,
    Section,
    Switch,
    as_columns,
    run_switch,
)
from isoscope.lab.tangent.concepts import concepts_of_run
from isoscope.lab.tangent.results import ABOVE, ENERGY, RATIO, RISE, sentence, verdict
from isoscope.lab.tangent.series import ANGLE
from isoscope.site import Site, order_sites
from isoscope.store import Run
from isoscope.study.gradients import CONTROL_GROUPS, SHUFFLED, direction_name
from isoscope.types import Curve, Reading

LEAD = (
    "Gradients of the loss, and how much of their energy lies in a proxy: the main directions "
    "of the activations of other documents. A ratio of 1 is as much as in the control. "
    "Subspaces of the complement are the published control, random subspaces give p-values, "
    "and the shuffled control has gradients without the tokens' own targets: what is above 1 "
    "against it is not owed to the activations alone."
)
CONCEPTS = (
    "Directions of the proxy with the tokens whose activations reach furthest along each, "
    "either way, and the share of the gradients' energy that goes into each."
)
NAMES = ("run", "step", "at", "site", "label", "order", "group", "value", "low", "high")
SHOWN_TOKENS = 4
LONGEST = 60  # characters of a context


@dataclass(frozen=True, slots=True)
class ConceptCurve(Curve):
    """One direction of a proxy at one step."""

    step: int | None
    direction: int
    variance: float
    top: tuple[tuple[str, str], ...]
    bottom: tuple[tuple[str, str], ...]


def draw_tangent(run: Run) -> Drawn:
    """Return what the page of a run of gradients shows."""
    readings = [each for each in run.readings if _is_gradient(each)]
    curves = [
        ConceptCurve(
            each.site, "all", step, each.direction, each.variance, each.top, each.bottom
        )
        for step, concepts in concepts_of_run(run).items()
        for each in concepts
    ]
    return Drawn(curves, _findings(readings), noun="gradients")


def _is_gradient(reading: Reading) -> bool:
    return Site.parse(reading.site).family in ("grad", "gradw")


def _findings(readings: Sequence[Reading]) -> list[Finding]:
    """Return at how many sites the ratio is above 1 against the shuffled control."""
    ratios = [r for r in readings if (r.measure, r.group) == (RATIO, SHUFFLED)]
    if not ratios:
        return []
    above = sum(verdict(each) == ABOVE for each in ratios)
    text = (
        "readings have more gradient energy in the proxy than the shuffled control, their "
        "intervals included"
    )
    return [Finding(f"{above} of {len(ratios)}", text, sentence(readings))]


def show(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return ratios and rises by layer, over steps, bands, and the concepts."""
    chosen = [each for each in exhibits if any(map(_is_gradient, each.readings))]
    if not chosen:
        return None
    steps = sorted({e.step for x in chosen for e in x.readings if e.step is not None})
    sites = order_sites(e.site for x in chosen for e in x.readings if _is_gradient(e))
    charts = [
        _chart(
            chosen, "ratio", "Energy ratio by layer", RATIO, "label:N", "proxy over control"
        ),
        _chart(
            chosen, "rise", "Rise of IsoScore*", RISE, "label:N", "less that of the control"
        ),
    ]
    if steps:
        charts.append(
            _chart(chosen, "steps", "Energy ratio over training", RATIO, "at:Q", "over control")
        )
    charts.append(
        _chart(chosen, "bands", "Energy by frequency band", ENERGY, "group:N", "share")
    )
    switches = [*run_switch([each.name for each in chosen])]
    if steps:
        named = tuple((str(each), str(each)) for each in steps)
        switches.append(Switch("step", "Step", named, str(steps[-1]), slider=True))
    if len(sites) > 1:
        streams = [site for site in sites if Site.parse(site).family == "grad"]  # have bands
        first = (streams or sites)[-1]
        switches.append(Switch("site", "Site", tuple((s, s) for s in sites), first))
    full = tuple(each for each in charts if each.columns["value"])
    return Panel((LEAD, CONCEPTS), tuple(switches), full, "".join(map(_concepts, chosen)))


def _chart(
    exhibits: Sequence[Exhibit], name: str, title: str, measure: str, x: str, axis: str
) -> Chart:
    rows = [row for each in exhibits for row in _rows(each, measure, name)]
    over_sites = name in ("ratio", "rise")
    ignored = {"ratio": ("site",), "rise": ("site",), "steps": ("step",), "bands": ()}[name]
    return Chart(
        name=f"tangent-{name}",
        title=title,
        spec=_spec(title, x, axis, logarithmic=measure == RATIO, order=over_sites),
        columns=as_columns(NAMES, rows),
        alt=f"{title}, with 95 % intervals.",
        half=True,
        ignores=ignored,
    )


def _rows(exhibit: Exhibit, measure: str, name: str) -> Iterator[dict[str, Cell]]:
    groups = FREQUENCIES if name == "bands" else CONTROL_GROUPS
    order = order_sites(each.site for each in exhibit.readings if _is_gradient(each))
    for each in exhibit.readings:
        if each.measure == measure and each.group in groups:
            site = Site.parse(each.site)
            yield {
                "run": exhibit.name,
                "step": "" if each.step is None else str(each.step),
                "at": each.step,
                "site": each.site,
                "label": site.part or site.label,
                "order": order.index(each.site),
                "group": each.group.removeprefix("frequency "),
                "value": each.value,
                "low": each.low,
                "high": each.high,
            }


def _spec(
    title: str, field: str, axis: str, *, logarithmic: bool, order: bool
) -> dict[str, Any]:
    base = alt.Chart(alt.NamedData(ROWS))
    sort = alt.EncodingSortField("order") if order else None
    if field == "at:Q":
        x: alt.X = alt.X(field, title="step", scale=alt.Scale(type="symlog", nice=False))
    else:
        words = {"label:N": "layer", "group:N": "share of all tokens"}[field]
        x = alt.X(field, title=words, sort=sort)
    kind = alt.Scale(type="log") if logarithmic else alt.Scale(zero=False)
    y = alt.Y("value:Q", title=axis, scale=kind)
    color = alt.Color("group:N", legend=None if field == "group:N" else alt.Legend(title=None))
    tips = [
        alt.Tooltip("site:N"),
        alt.Tooltip("group:N"),
        alt.Tooltip("value:Q", format=".4~g"),
        alt.Tooltip("low:Q", format=".4~g"),
        alt.Tooltip("high:Q", format=".4~g"),
    ]
    there = "datum.low !== null" + (" && datum.low > 0" if logarithmic else "")
    layers = [
        base.transform_filter(there)
        .mark_rule(style="whisker")
        .encode(x=x, y=alt.Y("low:Q", title=axis, scale=kind), y2="high:Q", color=color),
        base.mark_point(style="dot", size=45).encode(x=x, y=y, color=color, tooltip=tips),
    ]
    if field != "group:N":
        layers.insert(
            0, base.mark_line(filled=False, opacity=0.6).encode(x=x, y=y, color=color)
        )
    chart = alt.layer(*layers).properties(width="container", height=260)
    return chart.to_dict(validate=False) | {"title": {"text": title}}


def _concepts(exhibit: Exhibit) -> str:
    """Return the directions of every site as tables that fold away, of the last step."""
    curves = exhibit.curves_of(ConceptCurve)
    last = max((each.step for each in curves if each.step is not None), default=None)
    here = [each for each in curves if each.step == last]
    values = {
        (r.site, r.group, r.measure): r.value
        for r in exhibit.readings
        if r.step == last and r.measure in (ENERGY, ANGLE)
    }
    found: list[str] = []
    for site in order_sites(each.site for each in here):
        rows = [each for each in here if each.site == site]
        groups = [direction_name(each.direction) for each in rows]
        columns = (
            Column("direction", tuple(str(each.direction + 1) for each in rows)),
            Column("variance", tuple(f"{each.variance:.1%}" for each in rows)),
            Column("energy", tuple(_percent(values.get((site, g, ENERGY))) for g in groups)),
            Column("angle", tuple(short(values.get((site, g, ANGLE))) for g in groups)),
            Column("tokens at one end", tuple(_tokens(each.top) for each in rows), words=True),
            Column("and the other", tuple(_tokens(each.bottom) for each in rows), words=True),
            Column("for example", tuple(_example(each.top) for each in rows), words=True),
        )
        step = "" if last is None else f", step {last}"
        table = as_html(Table(f"{plain(exhibit.name)}{step}: {site}", columns))
        found.append(f"<details><summary>Concepts of {site}</summary>{table}</details>")
    return "".join(found)


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _tokens(end: Sequence[tuple[str, str]]) -> str:
    return " · ".join(plain(word.strip()) or "␣" for word, _ in end[:SHOWN_TOKENS])


def _example(end: Sequence[tuple[str, str]]) -> str:
    text = " ".join(plain(end[0][1]).split()) if end else ""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


SECTION = Section("tangent", "Gradients and tangents", show, first=True)

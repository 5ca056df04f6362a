"""The section of gradients: ratios by layer and step against three controls, and concepts."""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

import altair as alt

from isoscope.accumulate import FREQUENCIES
from isoscope.dataclass import dataclass
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
from isoscope.lab.tangent.results import ABOVE, ANGLE, ENERGY, RATIO, RISE, sentence, verdict
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
GRAD, GRADW = "grad", "gradw"  # the stream after a block, and the weight of a linear map
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
    return Site.parse(reading.site).family in (GRAD, GRADW)


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
    charts = [_chart(chosen, kind) for kind in KINDS if steps or kind.name != "steps"]
    switches = [*run_switch([each.name for each in chosen])]
    if steps:
        named = tuple((str(each), str(each)) for each in steps)
        switches.append(Switch("step", "Step", named, str(steps[-1]), slider=True))
    if len(sites) > 1:
        streams = [site for site in sites if Site.parse(site).family == GRAD]  # have bands
        first = (streams or sites)[-1]
        switches.append(Switch("site", "Site", tuple((s, s) for s in sites), first))
    full = tuple(each for each in charts if each.columns["value"])
    return Panel((LEAD, CONCEPTS), tuple(switches), full, "".join(map(_concepts, chosen)))


def _chart(exhibits: Sequence[Exhibit], kind: "Kind") -> Chart:
    rows = [row for each in exhibits for row in _rows(each, kind)]
    return Chart(
        name=f"tangent-{kind.name}",
        title=kind.title,
        spec=_spec(kind, len({row["label"] for row in rows})),
        columns=as_columns(NAMES, rows),
        alt=f"{kind.title}, with 95 % intervals.",
        half=True,
        ignores=kind.ignores,
    )


def _rows(exhibit: Exhibit, kind: "Kind") -> Iterator[dict[str, Cell]]:
    order = order_sites(each.site for each in exhibit.readings if _is_gradient(each))
    labels = _labels(order)
    for each in exhibit.readings:
        if each.measure == kind.measure and each.group in kind.groups:
            site = Site.parse(each.site)
            if kind.family and site.family != kind.family:
                continue
            yield {
                "run": exhibit.name,
                "step": "" if each.step is None else str(each.step),
                "at": each.step,
                "site": each.site,
                "label": labels[each.site],
                "order": order.index(each.site),
                "group": each.group.removeprefix("frequency "),
                "value": each.value,
                "low": each.low,
                "high": each.high,
            }


def _labels(sites: Sequence[str]) -> dict[str, str]:
    """Return what sites are called on an axis: layers, or maps without what all begin with."""
    parsed = {site: Site.parse(site) for site in sites}
    parts = [each.part.split(".")[:-1] for each in parsed.values() if each.family == GRADW]
    shared = 0
    if len(parts) > 1:
        alike = (len(set(names)) == 1 for names in zip(*parts, strict=False))
        shared = sum(1 for _ in takewhile(bool, alike))
    return {
        site: ".".join(each.part.split(".")[shared:]) if each.family == GRADW else each.label
        for site, each in parsed.items()
    }


@dataclass(frozen=True)
class Kind:
    """One chart of the section: what it shows, of which sites, and along which axis."""

    name: str
    title: str
    measure: str
    axis: str  # the title of the axis of values
    along: str  # the field of the other axis
    family: str = ""  # of sites; "" for all, one at a time
    groups: Sequence[str] = CONTROL_GROUPS

    @property
    def ignores(self) -> tuple[str, ...]:
        """The switches that do not change it."""
        return ("step",) if self.along == "at:Q" else ("site",) if self.family else ()


OVER, LESS = "proxy over control", "less that of the control"
KINDS = (
    Kind("ratio", "Energy ratio by layer", RATIO, OVER, "label:N", GRAD),
    Kind("rise", "Rise of IsoScore* by layer", RISE, LESS, "label:N", GRAD),
    Kind("ratio-maps", "Energy ratio by linear map", RATIO, OVER, "label:N", GRADW),
    Kind("rise-maps", "Rise of IsoScore* by linear map", RISE, LESS, "label:N", GRADW),
    Kind("steps", "Energy ratio over training", RATIO, OVER, "at:Q"),
    Kind("bands", "Energy by frequency band", ENERGY, "share", "group:N", groups=FREQUENCIES),
    Kind(
        "rise-bands", "Rise by frequency band", RISE, "rise", "group:N", groups=FREQUENCIES
    ),
)  # fmt: skip


def _spec(kind: Kind, rows: int) -> dict[str, Any]:
    """Return a chart: layers and steps are joined by lines, linear maps have a row each."""
    base, maps = alt.Chart(alt.NamedData(ROWS)), kind.family == GRADW
    ratio = kind.measure == RATIO
    how: dict[str, Any] = {"type": "log"} if ratio else {"zero": False}
    scale = alt.Scale(**how, nice=False, padding=8)
    level = alt.datum(1 if ratio else 0)
    color = alt.Color("group:N", legend=None if kind.along == "group:N" else LEGEND)
    tips = [
        alt.Tooltip("site:N"),
        alt.Tooltip("group:N"),
        alt.Tooltip("value:Q", format=".4~g"),
        alt.Tooltip("low:Q", format=".4~g"),
        alt.Tooltip("high:Q", format=".4~g"),
    ]
    there = "datum.low !== null" + (" && datum.low > 0" if ratio else "")
    axis = alt.X if maps else alt.Y
    lows, values = (
        axis(f"{name}:Q", title=kind.axis, scale=scale) for name in ("low", "value")
    )
    along = _across(kind)
    ends: dict[str, Any] = {"y": along, "x": lows, "x2": "high:Q"}
    places: dict[str, Any] = {"y": along, "x": values}
    if not maps:
        ends = {"x": along, "y": lows, "y2": "high:Q"}
        places = {"x": along, "y": values}
    layers = [
        base.transform_filter(there).mark_rule(style="whisker").encode(**ends, color=color),
        base.mark_point(style="dot", size=45).encode(**places, color=color, tooltip=tips),
    ]
    if not maps and kind.along != "group:N":
        line = base.mark_line(filled=False, opacity=0.6).encode(**places, color=color)
        layers.insert(0, line)
    if kind.groups is CONTROL_GROUPS:  # what a control that does as well has
        mark = base.mark_rule(style="mark-line")
        layers.insert(0, mark.encode(x=level) if maps else mark.encode(y=level))
    height = 40 + 30 * rows if maps else 260
    chart = alt.layer(*layers, width="container", height=height)
    return chart.to_dict(validate=False) | {"title": {"text": kind.title}}


LEGEND = alt.Legend(title=None)


def _across(kind: Kind) -> alt.X | alt.Y:
    """Return the other axis: steps, layers, frequency bands, or linear maps one by one."""
    if kind.family == GRADW:
        return alt.Y(kind.along, title=None, sort=alt.EncodingSortField("order"))
    if kind.along == "at:Q":
        return alt.X(kind.along, title="step", scale=alt.Scale(type="symlog", nice=False))
    if kind.along == "group:N":
        return alt.X(kind.along, title="share of all tokens", sort=None)
    return alt.X(kind.along, title="layer", sort=alt.EncodingSortField("order"))


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

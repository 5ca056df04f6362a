"""The section of heads: a map of layers and heads, and the curve of a head that is clicked."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import isfinite, nan

import altair as alt
import numpy as np

from isoscope.accumulate import Accumulator, Kind, QueryScores, accumulator_of
from isoscope.accumulate.heads import SHARES, STATISTICS
from isoscope.accumulate.row_bands import FREQUENCIES, band_name
from isoscope.display.page.section import (
    ROWS,
    Cell,
    Chart,
    ChartSpec,
    Drawn,
    Exhibit,
    Finding,
    Panel,
    Section,
    Switch,
    as_columns,
    run_switch,
)
from isoscope.errors import TooFewRowsError, UndefinedError
from isoscope.lab.attention.order import EARLY, find_orders
from isoscope.lab.attention.results import OF_KEYS, alignment, layers_of
from isoscope.measures import MEASURES
from isoscope.measures.view import GroupView, Summaries
from isoscope.site import HEAD, Site
from isoscope.store import Run
from isoscope.study.measure_choice import head_measures
from isoscope.study.reading import finalize_all
from isoscope.types import Array, HeadCurve, Reading

LEAD = (
    "Each cell is a head: its layer from top to bottom, its number from left to right, or its "
    "place by value where heads are ordered so. Click a head to see its curves below: over "
    "eight shares of the documents and along positions within them, or over training steps."
)
BEFORE = (
    "In models with rotary positions, means are also shown before rotation, which averages "
    "them away."
)
SHARED = "Keys that several heads share are the same in each of them and counted once: {text}."
# Statistics of scores that have a curve along positions, and what they are divided by.
ALONG = {
    "score-spread": ("spread", "weight"),
    "attention-entropy": ("entropy", "several"),
    "largest-probability": ("largest", "weight"),
    "first-token-mass": ("first", "weight"),
    "sink-mass": ("sink", "weight"),
}
SLOW = ("query-first-share", "key-first-cosine")  # an eigenvector for every point
COLUMNS = (
    "kind", "run", "stack", "measure", "along", "site", "layer", "head", "at", "number",
    "value", "low", "high",
)  # fmt: skip
EARLIER = "{name}, before rotation"
STACKS = {"": "all", "enc": "encoder", "dec": "decoder", "cross": "cross-attention"}
FIRST = "query-key-cosine"
SIGNED = ("query-key-cosine", "query-key-dot", "key-first-cosine")
AXES = {"documents": "shares of the documents", "positions": "position", "steps": "step"}
WIDTH = 620  # of a figure for a paper; a page fits the charts to its own
CHOSEN = "#d6336c"  # the outline of the head that was clicked, on light and on dark pages
LAST_STEP = "the map, tables and the verdict are of the last step; all: isoscope read RUN"
ORDER = "of {n} heads drift before they sharpen: the dot product of the means goes first"
HALF_WAY = "the first step at which half of the change from the first to the last is reached"
ENOUGH = 20  # steps of a curve, rather than curves of more measures
PREFERRED = ("query-key-dot", "attention-entropy", "query-key-cosine", "score-spread")
POINTS = 40_000  # of curves: what a page has room for


def show(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return the map of heads with their curves."""
    chosen = [each for each in exhibits if any(map(is_head, each.readings))]
    if not chosen:
        return None
    rows = [row for exhibit in chosen for row in _rows(exhibit)]
    known = dict.fromkeys(str(row["measure"]) for row in rows)
    names = [each for n in head_measures() for each in (n, EARLIER.format(name=n))]
    measures = [each for each in names if each in known]
    stacks = [name for name in STACKS if any(row["stack"] == name for row in rows)]
    alongs = [each for each in AXES if any(row["along"] == each for row in rows)]
    layers = 1 + max(int(row["layer"] or 0) for row in rows)
    first = next(str(row["site"]) for row in rows)
    specs = {
        each: _spec(layers, first, _alongs(rows, each), each, signed=each.startswith(SIGNED))
        for each in measures
    }
    plain = _spec(layers, first, alongs, "value", signed=False)
    chart = Chart(
        name="heads",
        title="Heads of attention",
        spec=plain,
        columns=as_columns(COLUMNS, rows),
        alt="One statistic of every attention head, by layer and head, and curves of one.",
        wide=True,
        least_height=300.0,
        by="measure",
        specs=specs,
    )
    switches = [
        *run_switch([each.name for each in chosen]),
        Switch(
            "measure",
            "Statistic",
            tuple((each, each) for each in measures),
            FIRST if FIRST in measures else measures[0],
        ),
    ]
    if len(stacks) > 1:
        named = tuple((each, STACKS[each]) for each in stacks)
        switches.append(Switch("stack", "Stack", named, stacks[0]))
    early = any(each.group == EARLY for exhibit in chosen for each in exhibit.readings)
    leads = [LEAD, *([BEFORE] if early else []), *_shared(chosen)]
    return Panel(tuple(leads), tuple(switches), (chart,))


def _alongs(rows: Sequence[Mapping[str, Cell]], measure: str) -> list[str]:
    """Return what a measure has curves over."""
    known = {str(row["along"]) for row in rows if row["measure"] == measure}
    return [each for each in AXES if each in known]


def is_head(reading: Reading) -> bool:
    """Whether a reading is of an attention head."""
    return Site.parse(reading.site).family == HEAD


def _shared(exhibits: Sequence[Exhibit]) -> list[str]:
    """Return how many heads and how many key heads there are, where these differ."""
    found: list[str] = []
    for exhibit in exhibits:
        layers = layers_of(last_step(exhibit.readings))
        heads = sum(len(each.of(OF_KEYS[0])) for each in layers)
        own = sum(len(each.distinct(OF_KEYS[0])) for each in layers)
        if own < heads:
            found.append(
                SHARED.format(text=f"{exhibit.name} has {heads:,} heads, {own:,} keys")
            )
    return found


def last_step(readings: Sequence[Reading]) -> list[Reading]:
    """Return the readings of the last step of a series; all of any other run."""
    last = max((each.step for each in readings if each.step is not None), default=None)
    return [each for each in readings if each.step == last]


def _rows(exhibit: Exhibit) -> Iterator[dict[str, Cell]]:
    """Yield the cells of the map, then the points of curves."""
    for each in filter(is_head, last_step(exhibit.readings)):
        row = _row(exhibit, each.site, each.measure, each.group)
        yield row | {"kind": "map", "value": each.value, "low": each.low, "high": each.high}
    for curve in exhibit.curves_of(HeadCurve):
        row = _row(exhibit, curve.site, curve.measure, curve.group)
        row |= {"kind": "curve", "along": curve.along}
        for number, at in enumerate(curve.at):
            yield row | {
                "at": at,
                "number": number,
                "value": float(curve.value[number]),
                "low": _end(curve.low, number),
                "high": _end(curve.high, number),
            }


def _end(ends: Array | None, number: int) -> float | None:
    return None if ends is None or not isfinite(ends[number]) else float(ends[number])


def _name(measure: str, group: str) -> str:
    return EARLIER.format(name=measure) if group == EARLY else measure


def _row(exhibit: Exhibit, name: str, measure: str, group: str) -> dict[str, Cell]:
    site = Site.parse(name)
    return {
        "run": exhibit.name,
        "stack": site.stack,
        "measure": _name(measure, group),
        "along": "",
        "site": name,
        "layer": site.layer,
        "head": site.head,
        "at": "",
        "number": 0,
    }


def _spec(
    layers: int, first: str, alongs: Sequence[str], title: str, *, signed: bool
) -> ChartSpec:
    """Return the specification: the map, and under it the curves of one head."""
    order = alt.param(
        name="order",
        value="number",
        bind=alt.binding_radio(options=["number", "value"], name="heads by "),
    )
    head = alt.selection_point(name="head", fields=["site"], value=[{"site": first}])
    base = alt.Chart(alt.NamedData(ROWS))
    scale = alt.Scale(range="heatmap")
    if signed:
        scale = alt.Scale(range="diverging", domainMid=0)
    cells = (
        base.transform_filter("datum.kind === 'map'")
        .transform_window(
            rank="row_number()",
            sort=[alt.SortField("value", order="descending")],
            groupby=["layer", "stack", "run"],
        )
        .transform_calculate(place="order === 'value' ? datum.rank - 1 : datum.head")
        .mark_rect(cursor="pointer")
        .encode(
            x=alt.X("place:O", title="head", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("layer:O", title="layer"),
            color=alt.Color("value:Q", title=title, scale=scale),
            opacity=alt.condition(head, alt.value(1.0), alt.value(0.75), empty=False),
            stroke=alt.condition(head, alt.value(CHOSEN), alt.value(None), empty=False),
            strokeWidth=alt.value(2),
            tooltip=[
                alt.Tooltip("site:N"),
                alt.Tooltip("measure:N"),
                *(alt.Tooltip(f"{name}:Q", format=".4g") for name in ("value", "low", "high")),
            ],
        )
        .properties(width=WIDTH, height=max(90, min(18 * layers, 620)))
        .add_params(head, order)
    )
    if not alongs:
        return _fitted(cells)
    width = WIDTH // len(alongs) - (50 if len(alongs) > 1 else 0)
    curves = [_curve(base, head, along, title, width) for along in alongs]
    return _fitted(alt.vconcat(cells, alt.hconcat(*curves)).resolve_scale(color="independent"))


def _fitted(chart: alt.Chart | alt.VConcatChart) -> ChartSpec:
    """Return a specification that a page fits to its own width."""
    spec: ChartSpec = chart.to_dict(validate=False)
    spec["usermeta"] = {"width": WIDTH}
    return spec


def _curve(
    base: alt.Chart, head: alt.Parameter, along: str, title: str, width: int
) -> alt.LayerChart | alt.FacetChart:
    """Return the curve of the head that was clicked, with its intervals where it has any."""
    chosen = base.transform_filter(
        f"datum.kind === 'curve' && datum.along === '{along}'"
    ).transform_filter(head)
    x = alt.X(
        "at:O",
        title=AXES[along],
        sort=alt.SortField("number"),
        axis=alt.Axis(labelAngle=-30),
    )
    line = chosen.mark_line(point=True).encode(
        x=x,
        y=alt.Y("value:Q", title=title, scale=alt.Scale(zero=False)),
        detail=alt.Detail("site:N"),
        tooltip=[
            alt.Tooltip("site:N"),
            alt.Tooltip("at:N", title=along),
            *(alt.Tooltip(f"{name}:Q", format=".4g") for name in ("value", "low", "high")),
        ],
    )
    band = chosen.mark_area(opacity=0.2).encode(
        x=x, y=alt.Y("low:Q", title=title), y2=alt.Y2("high:Q"), detail=alt.Detail("site:N")
    )
    name = (
        chosen.transform_aggregate(groupby=["site"])
        .mark_text(align="left", baseline="bottom", fontWeight="bold")
        .encode(x=alt.value(0), y=alt.value(-6), text=alt.Text("site:N"))
    )
    return alt.layer(band, line, name, width=width, height=150)


def draw_attention(run: Run) -> Drawn:
    """Return the curves of all heads, and what the verdict says of them."""
    readings = last_step(run.readings)
    if any(each.step is not None for each in readings):
        curves, remarks = _over_steps(run.readings)
        return Drawn(curves, _findings(run), remarks, noun="tokens", readings=readings)
    curves, more = list[HeadCurve](), list[HeadCurve]()
    for site in (site for site in run.sites if Site.parse(site).family == HEAD):
        here = run.survey_of(site).held[site, "all"]
        curves += _along_positions(site, here)
        more += _over_documents(site, finalize_all(here))
    curves += more
    kept, remarks = _that_fit(curves)
    return Drawn(kept, _findings(run), remarks, noun="tokens")


def _that_fit(curves: list[HeadCurve]) -> tuple[list[HeadCurve], list[str]]:
    """Return the curves that a page has room for, all heads of a measure or none."""
    sizes = Counter[tuple[str, str]]()
    for each in curves:
        sizes[each.along, each.measure] += len(each.at)
    order = sorted(sizes, key=lambda each: (_preference((each[1], "")), each[0]))
    room, kept = POINTS, set[tuple[str, str]]()
    for each in order:
        if sizes[each] <= room:
            kept.add(each)
            room -= sizes[each]
    remarks = [
        f"no room on this page for curves of heads over {along}: {', '.join(left_out)}"
        for along in AXES
        if (left_out := [each[1] for each in order if each[0] == along and each not in kept])
    ]
    return [each for each in curves if (each.along, each.measure) in kept], remarks


def _over_steps(readings: Sequence[Reading]) -> tuple[list[HeadCurve], list[str]]:
    """Return each measure of each head over the steps, as many steps as there is room for."""
    found: dict[tuple[str, str, str], dict[int, Reading]] = {}
    for each in filter(is_head, readings):
        if each.step is not None:
            found.setdefault((each.site, each.measure, each.group), {})[each.step] = each
    steps = sorted({step for here in found.values() for step in here})
    kinds = sorted(dict.fromkeys(each[1:] for each in found), key=_preference)
    heads = max(len({site for site, _, _ in found}), 1)
    enough = min(len(steps), ENOUGH)
    fit = [n for n in range(len(kinds), 0, -1) if POINTS // (heads * n) >= enough]
    kinds, left_out = kinds[: fit[0] if fit else 1], kinds[fit[0] if fit else 1 :]
    room = max(POINTS // (heads * max(len(kinds), 1)), 2)
    places = np.unique(np.linspace(0, len(steps) - 1, min(room, len(steps))).round())
    chosen = [steps[int(place)] for place in places]
    remarks = [LAST_STEP]
    if len(chosen) < len(steps):
        remarks.append(f"curves of heads have {len(chosen)} of {len(steps)} steps, for room")
    if left_out:
        names = ", ".join(_name(measure, group) for measure, group in left_out)
        remarks.append(f"no room on this page for curves of heads over steps: {names}")
    found = {key: here for key, here in found.items() if key[1:] in kinds}
    curves: list[HeadCurve] = []
    for (site, measure, group), here in found.items():
        line = [here[step] for step in chosen if step in here]
        curves.append(
            HeadCurve(
                site,
                "all",
                measure,
                "steps",
                tuple(str(each.step) for each in line),
                np.array([each.value for each in line]),
                group,
                np.array([nan if each.low is None else each.low for each in line]),
                np.array([nan if each.high is None else each.high for each in line]),
            )
        )
    return curves, remarks


def _preference(kind: tuple[str, str]) -> tuple[int, int]:
    """Return where a measure stands among those that a page is to show over steps."""
    measure, group = kind
    known = PREFERRED.index(measure) if measure in PREFERRED else len(PREFERRED)
    return known, 0 if group == EARLY else 1


def _over_documents(site: str, summaries: Summaries) -> Iterator[HeadCurve]:
    """Yield each measure over shares of the documents."""
    for record in (MEASURES[name] for name in head_measures() if name not in SLOW):
        at: list[str] = []
        values: list[float] = []
        with suppress(TooFewRowsError, UndefinedError):
            view = summaries.view(record.reads)
            assert isinstance(view, GroupView)
            for share in range(SHARES):
                chosen = view.keys % np.uint64(SHARES) == share
                if chosen.any():
                    with suppress(TooFewRowsError, UndefinedError):
                        values.append(record.compute(view.only(chosen)))
                        at.append(f"share {share + 1}")
        if values:
            value = np.array(values)
            yield HeadCurve(site, "all", record.name, "documents", tuple(at), value)


def _along_positions(
    site: str, here: Mapping[Kind, Accumulator[object]]
) -> Iterator[HeadCurve]:
    """Yield the statistics of scores by position within the document."""
    if QueryScores not in here:
        return
    bands = accumulator_of(here, QueryScores).bands
    for measure, (name, over) in ALONG.items():
        total, weight = (bands[:, STATISTICS.index(each)] for each in (name, over))
        there = np.flatnonzero(weight > 0)
        if len(there):
            names = (band_name(len(FREQUENCIES) + int(band)) for band in there)
            at = tuple(each.removeprefix("position ") for each in names)
            yield HeadCurve(site, "all", measure, "positions", at, total[there] / weight[there])


def _findings(run: Run) -> list[Finding]:
    """Return how many heads align or oppose, and of a series what comes first."""
    found: list[Finding] = []
    readings = last_step(run.readings)
    early = any(each.group == EARLY for each in readings)
    group, words = (EARLY, " before rotation") if early else ("", "")
    counts = alignment(readings, group)
    total = sum(counts.values())
    if total:
        text = (
            f"of {total} heads have mean queries and mean keys that align{words}; "
            f"in {counts['opposed']} the two are opposed, in {counts['neither']} neither"
        )
        rule = "the 95 % interval of the cosine between the two means lies above 0"
        found.append(Finding(str(counts["aligned"]), text, rule))
    orders = find_orders(run.readings)
    if orders.heads:
        first = sum(each.drift_comes == "before" for each in orders.heads)
        found.append(Finding(str(first), ORDER.format(n=len(orders.heads)), HALF_WAY))
    return found


SECTION = Section("heads", "Heads of attention", show, first=True)

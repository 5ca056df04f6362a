"""The section of heads: a map of layers and heads, and the curve of a head that is clicked."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product

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
from isoscope.lab.attention.results import EARLY, OF_KEYS, alignment, layers_of
from isoscope.measures import MEASURES
from isoscope.measures.view import GroupView, Summaries
from isoscope.site import HEAD, Site
from isoscope.store import Run
from isoscope.study.measure_choice import head_measures
from isoscope.study.reading import finalize_all
from isoscope.types import HeadCurve, Reading

LEAD = (
    "Each cell is a head: its layer from top to bottom, its number from left to right, or its "
    "place by value where heads are ordered so. Click a head to see its curve below: along "
    "positions within documents, over eight shares of the documents, or over training steps."
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
    "kind", "run", "stack", "measure", "stage", "along", "site", "layer", "head", "at",
    "number", "value", "low", "high",
)  # fmt: skip
STAGES = {"": "after rotation", EARLY: "before rotation"}
STACKS = {"": "all", "enc": "encoder", "dec": "decoder", "cross": "cross-attention"}
FIRST = "query-key-cosine"


def show(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return the map of heads with their curves."""
    chosen = [each for each in exhibits if any(map(is_head, each.readings))]
    if not chosen:
        return None
    rows = [row for exhibit in chosen for row in _rows(exhibit)]
    measures = [name for name in head_measures() if any(r["measure"] == name for r in rows)]
    stages = [name for name in STAGES if any(r["stage"] == name for r in rows)]
    stacks = [name for name in STACKS if any(r["stack"] == name for r in rows)]
    alongs = list(dict.fromkeys(str(r["along"]) for r in rows if r["kind"] == "curve"))
    layers = 1 + max(int(r["layer"] or 0) for r in rows)
    first = next(str(r["site"]) for r in rows)
    chart = Chart(
        name="heads",
        title="Heads of attention",
        spec=_spec(layers, first),
        columns=as_columns(COLUMNS, rows),
        alt="One statistic of every attention head, by layer and head, and the curve of one.",
        wide=True,
        least_height=300.0,
    )
    switches = [
        *run_switch([each.name for each in chosen]),
        Switch("measure", "Statistic", tuple((m, m) for m in measures), measures[0]),
    ]
    if FIRST in measures:
        switches[-1] = Switch("measure", "Statistic", tuple((m, m) for m in measures), FIRST)
    for name, label, values, words in (
        ("stage", "Queries and keys", stages, STAGES),
        ("stack", "Stack", stacks, STACKS),
        ("along", "Curve", alongs, {each: each for each in alongs}),
    ):
        if len(values) > 1:
            named = tuple((value, words[value]) for value in values)
            switches.append(Switch(name, label, named, values[0]))
    leads = [LEAD, *([BEFORE] if len(stages) > 1 else []), *_shared(chosen)]
    return Panel(tuple(leads), tuple(switches), (chart,))


def is_head(reading: Reading) -> bool:
    """Whether a reading is of an attention head."""
    return Site.parse(reading.site).family == HEAD


def _shared(exhibits: Sequence[Exhibit]) -> list[str]:
    """Return how many heads and how many key heads there are, where these differ."""
    found: list[str] = []
    for exhibit in exhibits:
        layers = layers_of(exhibit.readings)
        keys = [each.of(OF_KEYS[0]) for each in layers]
        heads = sum(map(len, keys))
        own = sum(len({each.value for each in here}) for here in keys)
        if own < heads:
            found.append(
                SHARED.format(text=f"{exhibit.name} has {heads:,} heads, {own:,} keys")
            )
    return found


def _rows(exhibit: Exhibit) -> Iterator[dict[str, Cell]]:
    """Yield the cells of the map, then the points of curves."""
    curves = exhibit.curves_of(HeadCurve)
    alongs = list(dict.fromkeys(curve.along for curve in curves)) or [""]
    series = [each for each in exhibit.readings if is_head(each) and each.step is not None]
    if series:
        alongs = ["steps", *(each for each in alongs if each)]
    last = max((each.step for each in series if each.step is not None), default=None)
    readings = [each for each in exhibit.readings if is_head(each)]
    groups = dict.fromkeys(each.group for each in readings)
    early = {each.measure for each in readings if each.group}
    for each in readings:
        if each.step == last:
            stages = [each.group] if each.measure in early else groups
            for stage, along in product(stages, alongs):  # whichever curve is shown
                yield _row(exhibit, each.site, each.measure, stage, along, "map", each)
    for each in series:
        row = _row(exhibit, each.site, each.measure, each.group, "steps", "curve", each)
        yield row | {"at": str(each.step), "number": each.step}
    for curve in curves:
        for stage in [""] if curve.measure in early else groups:
            for number, (at, value) in enumerate(
                zip(curve.at, curve.value.tolist(), strict=True)
            ):
                row = _row(exhibit, curve.site, curve.measure, stage, curve.along, "curve")
                yield row | {"at": at, "number": number, "value": value}


def _row(
    exhibit: Exhibit,
    name: str,
    measure: str,
    stage: str,
    along: str,
    kind: str,
    reading: Reading | None = None,
) -> dict[str, Cell]:
    site = Site.parse(name)
    return {
        "kind": kind,
        "run": exhibit.name,
        "stack": site.stack,
        "measure": measure,
        "stage": stage,
        "along": along,
        "site": name,
        "layer": site.layer,
        "head": site.head,
        "at": "",
        "number": 0,
        "value": None if reading is None else reading.value,
        "low": None if reading is None else reading.low,
        "high": None if reading is None else reading.high,
    }


def _spec(layers: int, first: str) -> ChartSpec:
    """Return the specification: the map, and under it the curve of one head."""
    order = alt.param(
        name="order",
        value="number",
        bind=alt.binding_radio(options=["number", "value"], name="heads by "),
    )
    head = alt.selection_point(name="head", fields=["site"], value=[{"site": first}])
    base = alt.Chart(alt.NamedData(ROWS))
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
            color=alt.Color("value:Q", title="value", scale=alt.Scale(range="heatmap")),
            opacity=alt.condition(head, alt.value(1.0), alt.value(0.75), empty=False),
            stroke=alt.condition(head, alt.value("black"), alt.value(None), empty=False),
            tooltip=[
                alt.Tooltip("site:N"),
                alt.Tooltip("measure:N"),
                *(alt.Tooltip(f"{name}:Q", format=".4g") for name in ("value", "low", "high")),
            ],
        )
        .properties(width=620, height=max(90, min(18 * layers, 620)))
        .add_params(head, order)
    )
    curve = (
        base.transform_filter("datum.kind === 'curve'")
        .transform_filter(head)
        .mark_line(point=True)
        .encode(
            x=alt.X(
                "at:O",
                title="along the curve",
                sort=alt.SortField("number"),
                axis=alt.Axis(labelAngle=-30),
            ),
            y=alt.Y("value:Q", title="value", scale=alt.Scale(zero=False)),
            detail="site:N",
            tooltip=[
                alt.Tooltip("site:N"),
                alt.Tooltip("at:N"),
                alt.Tooltip("value:Q", format=".4g"),
            ],
        )
        .properties(width=620, height=150)
    )
    return alt.vconcat(cells, curve).resolve_scale(color="independent").to_dict(validate=False)


def draw_attention(run: Run) -> Drawn:
    """Return the curves of all heads, and what the verdict says of them."""
    curves: list[HeadCurve] = []
    for site in (site for site in run.sites if Site.parse(site).family == HEAD):
        here = run.survey_of(site).held[site, "all"]
        summaries = finalize_all(here)
        curves += [*_over_documents(site, summaries), *_along_positions(site, here)]
    return Drawn(curves, _findings(run), noun="tokens")


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
    """Return how many heads align or oppose."""
    found: list[Finding] = []
    early = any(each.group == EARLY for each in run.readings)
    for group, words in ((EARLY, " before rotation"),) if early else (("", ""),):
        counts = alignment(run.readings, group)
        total = sum(counts.values())
        if total:
            text = (
                f"of {total} heads have mean queries and mean keys that align{words}; "
                f"{counts['opposed']} oppose each other, {counts['neither']} do neither"
            )
            rule = "the 95 % interval of the cosine between the two means lies above 0"
            found.append(Finding(str(counts["aligned"]), text, rule))
    return found


SECTION = Section("heads", "Heads of attention", show, first=True)

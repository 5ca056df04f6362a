"""The section of an ablation: effects with their intervals, and the curves of cells."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import altair as alt
import msgspec

from isoscope.dataclass import dataclass
from isoscope.display import Column, Table, as_html, format_value, non_empty
from isoscope.display.page.quantity import title_of
from isoscope.display.page.section import (
    ROWS,
    Chart,
    Columns,
    Drawn,
    Exhibit,
    Finding,
    Panel,
    Section,
    Switch,
    as_columns,
    run_switch,
)
from isoscope.errors import StoreError
from isoscope.lab.nursery.ablation import (
    COSINE,
    EXCESS,
    OUTPUT,
    SURE,
    Ablation,
    CellRecord,
    EffectLine,
    ablation_of,
    effects_of,
)
from isoscope.lab.nursery.effects import Factor, Outcome
from isoscope.lab.nursery.ingredients import label_of
from isoscope.lab.nursery.results import HELD_OUT, SITE
from isoscope.store import Run
from isoscope.types import Curve

LEAD = (
    "Small models that differ in one ingredient each, every combination trained from several "
    "seeds on a synthetic language of known entropy. An effect is with the ingredient minus "
    "without it, averaged over all others; a pair is by how much the effect of the first grows "
    "with the second. Intervals of 95 % come from seeds within cells and are not corrected for "
    "their number; p in the table is. Cosines are on the scale of Fisher's z."
)
CURVES = "Beside it, the measure of every cell over training, mean over seeds."
AXIS = "effect (of cosines on Fisher's z)"
TITLES = {EXCESS: "held-out loss above the known entropy", HELD_OUT: "held-out loss"}
EFFECT_COLUMNS = (
    "run",
    "measure",
    "factor",
    "change",
    "value",
    "low",
    "high",
    "p",
    "sure",
)


@dataclass(frozen=True, slots=True)
class CellCurve:
    """One outcome of one cell over steps, mean over seeds."""

    outcome: str
    cell: str
    levels: tuple[str, ...]
    step: int
    value: float


@dataclass(frozen=True, slots=True)
class AblationCurves(Curve):
    """The effects of an ablation, and its cells over steps."""

    factors: tuple[tuple[str, tuple[str, ...]], ...]
    outcomes: tuple[tuple[str, str], ...]  # key, and title
    effects: tuple[EffectLine, ...]
    cells: tuple[CellCurve, ...]


def draw_ablation(run: Run) -> Drawn:
    """Return what the page of an ablation shows."""
    try:
        found = ablation_of(run)
        effects = tuple(effects_of(found))
    except (LookupError, ValueError, TypeError, msgspec.MsgspecError) as error:
        raise StoreError(
            f"expected the cells of an ablation in {run.path.name!r}, got others: {error!r}"[
                :300
            ],
            hint="run the ablation again",
            slug="store-damaged",
        ) from error
    outcomes = tuple((key_of(each), title(each)) for each in found.outcomes())
    cells = tuple(
        curve
        for cell, records in found.cells().items()
        for outcome in found.outcomes()
        for curve in _cell_curve(found.varied, cell, records, outcome)
    )
    curves = AblationCurves("model", "all", found.factors, outcomes, effects, cells)
    return Drawn([curves], findings(found, effects), noun="tokens", readings=())


def key_of(outcome: Outcome) -> str:
    """Return the name of an outcome, as rules of `check` write it.

    >>> key_of(("isoscore", "norm.out", "no-sink"))
    'isoscore@norm.out/no-sink'
    """
    measure, site, variant = outcome
    where = "" if site == SITE else f"@{site}"
    return f"{measure}{where}{'' if variant == 'all' else f'/{variant}'}"


def title(outcome: Outcome) -> str:
    """Return an outcome for people to read."""
    measure, site, variant = outcome
    name = TITLES.get(measure) or title_of(measure)
    where = "" if site == SITE else f" at {site}"
    return f"{name}{where}{' without sinks' if variant == 'no-sink' else ''}"


def _cell_curve(
    factors: Sequence[Factor],
    cell: tuple[str, ...],
    records: Sequence[CellRecord],
    outcome: Outcome,
) -> list[CellCurve]:
    measure, site, variant = outcome
    by_step: dict[int, list[float]] = {}
    for each in records:
        if measure == EXCESS:
            points = [(s, v - each.floor) for s, v in each.curve(HELD_OUT, SITE, "all")]
        else:
            points = each.curve(measure, site, variant) or each.curve(measure, site, "all")
        for step, value in points:
            by_step.setdefault(step, []).append(value)
    label = label_of(factors, cell)
    return [
        CellCurve(key_of(outcome), label, cell, step, round(fmean(values), 5))
        for step, values in sorted(by_step.items())
    ]


def findings(found: Ablation, effects: Sequence[EffectLine]) -> list[Finding]:
    """Return what each factor does to the cosine of the output, for the verdict."""
    places = [
        each
        for each in effects
        if (each.measure, each.site, each.variant) == (COSINE, OUTPUT, "all")
        and ":" not in each.factor
    ]
    return [_finding(found, each) for each in places]


def _finding(found: Ablation, each: EffectLine) -> Finding:
    runs = sum(not found.lost(record) for record in found.records)
    sure = each.p_corrected is not None and each.p_corrected < SURE
    end = "" if sure else ", which seeds alone may do"
    doubt = f" ({'; '.join(each.marks)})" if each.marks else ""
    text = (
        f"is what {each.factor} ({each.change}) adds to Fisher's z of the mean cosine at "
        f"{OUTPUT}{end}{doubt}"
    )
    rule = f"mean over {runs} trainings; no interval from one seed"
    if each.low is not None and each.high is not None and each.p_corrected is not None:
        rule = (
            f"95 % interval {each.low:.3g} to {each.high:.3g}, p = {each.p_corrected:.3g} "
            f"after Holm, {runs} trainings"
        )
    return Finding(f"{each.value:+.2g}", text, rule)


# --- the panel ----------------------------------------------------------------------------
Named = tuple[str, AblationCurves]


def show(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return the effects of all ablations, and the curves of their cells."""
    found = [(each.name, c) for each in exhibits for c in each.curves_of(AblationCurves)]
    if not found:
        return None
    outcomes = dict(pair for _, curves in found for pair in curves.outcomes)
    factors = dict(pair for _, curves in found for pair in curves.factors)
    charts = (
        Chart(
            name="ablation-effects",
            title="Effects",
            spec=_effect_spec(),
            columns=_effect_columns(found),
            alt="Each factor and pair with its effect and its 95 % interval.",
            half=True,
            shows=("measure",),
        ),
        Chart(
            name="ablation-cells",
            title="Cells over training",
            spec=_cell_spec(next(iter(factors)), factors),
            specs={name: _cell_spec(name, factors) for name in factors},
            by="colour",
            columns=_cell_columns(found, list(factors)),
            alt="The measure of every cell over steps, coloured by the level of a factor.",
            half=True,
            shows=("measure",),
        ),
    )
    switches = (
        *run_switch([name for name, _ in found]),
        Switch("measure", "Measure", tuple(outcomes.items()), next(iter(outcomes))),
        Switch(
            "colour", "Colours", tuple((name, name) for name in factors), next(iter(factors))
        ),
    )
    return Panel((LEAD, CURVES), switches, charts, _table(found))


def _effect_columns(found: Sequence[Named]) -> Columns:
    rows = [
        {
            "run": run,
            "measure": key_of((each.measure, each.site, each.variant)),
            "factor": each.factor,
            "change": each.change,
            "value": each.value,
            "low": each.low,
            "high": each.high,
            "p": each.p_corrected,
            "sure": _verdict(each),
        }
        for run, curves in found
        for each in curves.effects
    ]
    return as_columns(EFFECT_COLUMNS, rows)


VERDICTS = ("p < 0.05 after Holm", "may be chance")


def _verdict(each: EffectLine) -> str:
    return VERDICTS[0 if each.p_corrected is not None and each.p_corrected < SURE else 1]


def _cell_columns(found: Sequence[Named], factors: Sequence[str]) -> Columns:
    names = ("run", "measure", "cell", "step", "value", *(f"level {name}" for name in factors))
    rows = []
    for run, curves in found:
        own = [name for name, _ in curves.factors]
        for each in curves.cells:
            levels = dict(zip(own, each.levels, strict=True))
            rows.append(
                {
                    "run": run,
                    "measure": each.outcome,
                    "cell": each.cell,
                    "step": each.step,
                    "value": each.value,
                    **{f"level {name}": levels.get(name, "") for name in factors},
                }
            )
    return as_columns(names, rows)


def _effect_spec() -> dict[str, Any]:
    base = alt.Chart(alt.NamedData(ROWS))
    # Every factor has its name, however little room there is.
    y = alt.Y("factor:N", title=None, sort=None, axis=alt.Axis(labelOverlap=False))
    color = alt.Color(
        "sure:N", scale=alt.Scale(domain=list(VERDICTS)), legend=alt.Legend(title=None)
    )
    tips = [
        alt.Tooltip("factor:N"),
        alt.Tooltip("change:N"),
        alt.Tooltip("value:Q", title="effect", format="+.4~f"),
        alt.Tooltip("low:Q", format="+.4~f"),
        alt.Tooltip("high:Q", format="+.4~f"),
        alt.Tooltip("p:Q", title="p (Holm)", format=".3~g"),
    ]
    layers = [
        base.mark_rule(style="mark-line").encode(x=alt.datum(0)),
        base.mark_rule(style="whisker").encode(
            x=alt.X("low:Q", title=AXIS), x2=alt.X2("high:Q"), y=y, color=color
        ),
        base.mark_point(style="mean").encode(
            x=alt.X("value:Q", title=AXIS), y=y, color=color, tooltip=tips
        ),
    ]
    return _whole(layers, "Effects", "with the ingredient minus without it, 95 % intervals")


def _cell_spec(factor: str, factors: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    base = alt.Chart(alt.NamedData(ROWS))
    scale = alt.Scale(type="symlog", constant=1)
    line = base.mark_line(filled=False, opacity=0.8).encode(
        x=alt.X("step:Q", title="step", scale=scale),
        y=alt.Y("value:Q", title=None, scale=alt.Scale(zero=False)),
        detail=alt.Detail("cell:N"),
        color=alt.Color(
            f"level {factor}:N",
            scale=alt.Scale(domain=list(factors[factor])),
            legend=alt.Legend(title=factor),
        ),
        tooltip=[
            alt.Tooltip("cell:N"),
            alt.Tooltip("step:Q"),
            alt.Tooltip("value:Q", format=".4~g"),
        ],
    )
    return _whole([line], "Cells over training", "one line per cell, mean over seeds")


def _whole(layers: Sequence[Any], title: str, says: str) -> dict[str, Any]:
    chart = alt.layer(*layers, width="container", height=300)
    return chart.to_dict(validate=False) | {"title": {"text": title, "subtitle": says}}


def _table(found: Sequence[Named]) -> str:
    """Return all effects as a table that folds away."""
    rows = [(run, each) for run, curves in found for each in curves.effects]
    shown = [format_value(each.value, each.low, each.high) for _, each in rows]
    columns = (
        Column("run", tuple(run if len(found) > 1 else "" for run, _ in rows), words=True),
        Column("factor", tuple(each.factor for _, each in rows), words=True),
        Column("change", tuple(each.change for _, each in rows), words=True),
        Column(
            "measure",
            tuple(title((e.measure, e.site, e.variant)) for _, e in rows),
            words=True,
        ),
        Column("effect", tuple(value for value, _ in shown)),
        Column("95 % interval", tuple(interval for _, interval in shown)),
        Column(
            "p (Holm)",
            tuple("" if e.p_corrected is None else f"{e.p_corrected:.3f}" for _, e in rows),
        ),
        Column("doubts", tuple("; ".join(each.marks) for _, each in rows), words=True),
    )
    table = as_html(Table("Effects of all factors and pairs", non_empty(columns)))
    return f"<details><summary>The effects as a table</summary>{table}</details>"


SECTION = Section("ablation", "Ablation", show, first=True)

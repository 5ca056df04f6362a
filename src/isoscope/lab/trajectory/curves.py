"""A series as a page draws it: its numbers, read off the readings and steps of a run."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from isoscope.dataclass import dataclass
from isoscope.display import format_value
from isoscope.display.page.quantity import quantities
from isoscope.display.page.section import Drawn, Finding
from isoscope.errors import StoreError
from isoscope.lab.trajectory.results import (
    BY_FREQUENCY,
    THEORY_READINGS,
    chance,
    shown_measures,
)
from isoscope.site import is_matrix, last_of_stream, order_sites
from isoscope.store import Run
from isoscope.store.series import SeriesParts
from isoscope.types import Array, Curve, Reading

LAST_STEP = "profiles, table and verdict are of the last step; all steps: isoscope read RUN"
CELLS = 26_000  # values of the map that a page has room for: measures x sites x steps
POINTS = 44_000  # points of spectra
THEORY_CELLS = 14_000
THEORIES = {  # measure, title; readings that no measure of rows gives
    "norm-bias": "Final norm: |bias|",
    "norm-gain": "Final norm: |gain|",
    "norm-ratio": "Final norm: |bias| / |gain|",
    "norm-cosine-before": "Mean cosine: normalised",
    "norm-cosine-gain": "Mean cosine: times the gain",
    "norm-cosine-bias": "Mean cosine: plus the bias",
    "hull-has-origin": "Hull of final states holds the origin (1: yes)",
    "hull-margin": "Hull of final states: margin",
    "partition": "I(W) of the matrices",
    "partition-centred": "I(W) of the matrices, centred",
    "row-norm": "Norm of rows by frequency",
    "common-share": "Share of the common direction by frequency",
    "away-cosine": "Cosine to the negative mean state by frequency",
    "away-projection": "Projection on the negative mean state by frequency",
}
NO_MEASURES = frozenset((*THEORY_READINGS, *BY_FREQUENCY))
BESIDE = {"hull-has-origin": "hull-if-isotropic"}  # drawn in the chart of another


@dataclass(frozen=True, slots=True, eq=False)
class TrajectoryCurves(Curve):
    """A series as a page draws it: numbers by measure, step and site."""

    steps: tuple[int, ...]
    sites: tuple[str, ...]
    measures: tuple[str, ...]
    values: Array  # (measures, steps, sites), NaN where there is none
    low: Array
    high: Array
    spectra: tuple[tuple[str, int, Array, Array], ...]  # site, step, ranks, values
    theories: tuple[tuple[str, str, int, float], ...]  # measure, line, step, value
    metrics: tuple[tuple[str, int, float], ...]  # name, step, value
    lines: tuple["CurveLine", ...]


@dataclass(frozen=True, slots=True)
class CurveLine:
    """One line of the table: what changed at a site."""

    site: str
    measure: str
    first: tuple[float, float | None, float | None]
    last: tuple[float, float | None, float | None]
    change: tuple[float, float | None, float | None]
    onset: int | None
    onset_p: float | None
    sudden: int | None
    sudden_p: float | None
    links: tuple[str, ...]


def draw_trajectory(run: Run) -> Drawn:
    """Return what the page of a trajectory shows: its curves, and readings of the last step."""
    steps = sorted({each.step for each in run.readings if each.step is not None})
    try:
        if len(steps) < 2:
            raise ValueError(f"{len(steps)} steps")
        curves = _curves_of(run.readings, SeriesParts.decode(run.series or b""), steps)
    except (ValueError, LookupError, msgspec.ValidationError) as error:
        raise StoreError(
            f"expected the steps of a series in {run.path.name!r}, got others: {error}"[:300],
            hint="follow the series again",
            slug="store-damaged",
        ) from error
    last = [each for each in run.readings if each.step == steps[-1]]
    plain = [each for each in last if each.measure not in NO_MEASURES and each.site != "model"]
    return Drawn([curves], _findings(curves), [LAST_STEP], noun="tokens", readings=plain)


def _curves_of(
    readings: Sequence[Reading], parts: SeriesParts, steps: Sequence[int]
) -> TrajectoryCurves:
    """Return the numbers of a series, as many measures as a page has room for."""
    whole = [
        each
        for each in readings
        if each.step is not None
        and each.variant == "all"
        and not each.group
        and not is_matrix(each.site)
        and each.measure not in NO_MEASURES
        and each.site != "model"
    ]
    sites = order_sites(each.site for each in whole)
    named = [
        form
        for each in quantities(each.measure for each in whole)
        for form in dict.fromkeys((each.debiased or each.plain, each.plain))
    ]
    room = max(1, CELLS // max(len(sites) * len(steps), 1))
    measures = named[:room]
    shape = len(measures), len(steps), len(sites)
    value, low, high = (np.full(shape, np.nan) for _ in range(3))
    at = [{key: n for n, key in enumerate(keys)} for keys in (measures, steps, sites)]
    for each in whole:
        if each.measure in at[0]:
            place = at[0][each.measure], at[1][each.step or 0], at[2][each.site]
            value[place] = each.value
            low[place] = np.nan if each.low is None else each.low
            high[place] = np.nan if each.high is None else each.high
    return TrajectoryCurves(
        site="",
        variant="all",
        steps=tuple(steps),
        sites=tuple(sites),
        measures=tuple(measures),
        values=value,
        low=low,
        high=high,
        spectra=_spectra(parts),
        theories=_theories(readings),
        metrics=tuple(
            (each.name, step, number)
            for each in parts.metrics
            for step, number in zip(each.steps, each.values, strict=True)
        ),
        lines=tuple(_lines(parts.lines)),
    )


def _spectra(parts: SeriesParts) -> tuple[tuple[str, int, Array, Array], ...]:
    """Return spectra at as many ranks as there is room for, the first and last included."""
    found = [(each, step.step) for step in parts.steps for each in step.spectra]
    room = max(4, POINTS // max(len(found), 1))
    curves: list[tuple[str, int, Array, Array]] = []
    for each, step in found:
        count = len(each.rank)
        kept = np.unique(np.linspace(0, count - 1, min(room, count)).round().astype(int))
        curves.append((each.site, step, np.array(each.rank)[kept], np.array(each.value)[kept]))
    return tuple(curves)


def _theories(readings: Sequence[Reading]) -> tuple[tuple[str, str, int, float], ...]:
    found = [
        (name, _theory_line(each), each.step or 0, each.value)
        for name in THEORIES
        for each in readings
        if each.measure in (name, BESIDE.get(name)) and each.variant == "all"
    ]
    return tuple(found[:THEORY_CELLS])


def _theory_line(each: Reading) -> str:
    """Return what a line of a theory is called: its site, and its band of tokens."""
    if each.measure in BESIDE.values():
        return f"{each.site}, chance if isotropic (Wendel)"
    band = each.group.removeprefix("frequency ")
    return f"{each.site}, {band}" if band else each.site


class _Found(msgspec.Struct):
    """What a line of the file has, as far as the page shows it."""

    site: str
    variant: str
    group: str
    measure: str
    values: list[float]
    low: list[float | None]
    high: list[float | None]
    differences: list[dict[str, float | None]]
    onset: dict[str, object]
    sudden: dict[str, object]
    metrics: list[dict[str, object]]


def _lines(lines: Sequence[Mapping[str, object]]) -> Iterator[CurveLine]:
    """Yield the lines that the table of the page shows."""
    shown = shown_measures(str(line.get("measure")) for line in lines)
    for line in lines:
        whole = not line.get("group") and line.get("variant") == "all"
        if whole and line.get("measure") in shown:
            yield _line(msgspec.convert(line, _Found))


def _line(each: _Found) -> CurveLine:
    change = each.differences[-1]
    return CurveLine(
        site=each.site,
        measure=each.measure,
        first=(each.values[0], each.low[0], each.high[0]),
        last=(each.values[-1], each.low[-1], each.high[-1]),
        change=(change["value"] or 0.0, change["low"], change["high"]),
        onset=_integer(each.onset.get("step")),
        onset_p=_float(each.onset.get("p")),
        sudden=_integer(each.sudden.get("step")),
        sudden_p=_float(each.sudden.get("p")),
        links=tuple(_link(link) for link in each.metrics),
    )


def _link(link: Mapping[str, object]) -> str:
    together, p = _float(link.get("correlation")), _float(link.get("p"))
    lag, lead_p = link.get("lag"), _float(link.get("lead_p"))
    if together is None:
        return ""
    text = f"{link['metric']}: {together:+.2f}" + (f", p {chance(p)}" if p is not None else "")
    return text + (f"; strongest {lag} later, p {chance(lead_p)}" if lead_p is not None else "")


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _float(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _findings(curves: TrajectoryCurves) -> list[Finding]:
    """Return how the output changed from the first step to the last, for the verdict."""
    output = last_of_stream(curves.sites)
    found: list[Finding] = []
    for line in curves.lines:
        if line.site != output or line.measure not in (
            "mean-cosine-cross",
            "isoscore-debiased",
        ):
            continue
        value, interval = format_value(*line.change)
        onset = (
            "no step differs from the first"
            if line.onset is None
            else f"step {line.onset:,} is the first that differs (p {chance(line.onset_p)})"
        )
        jump = "" if line.sudden is None else f"; it jumps at step {line.sudden:,}"
        text = (
            f"is what {line.measure} at {line.site} changes by from step {curves.steps[0]:,} "
            f"to {curves.steps[-1]:,}; {onset}{jump}"
        )
        rule = (
            f"paired by document over {len(curves.steps)} checkpoints, 95 % interval {interval}"
        )
        found.append(Finding(value, text, rule))
    return found

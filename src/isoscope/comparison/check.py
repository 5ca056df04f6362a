"""Check a run against rules, as a gate."""

from collections.abc import Iterator, Sequence
from math import isfinite

from isoscope.comparison.outcomes import OUTCOMES
from isoscope.comparison.pairing import pairing
from isoscope.comparison.rule import GateRule, known_measures, parse_rule
from isoscope.comparison.side import RunOrPath, Side, gap_between
from isoscope.display import Results
from isoscope.errors import ConfigError, GateError
from isoscope.measures.difference import Difference
from isoscope.registry import unknown
from isoscope.store import Run, open_run
from isoscope.types import GateOutcome, Reading


def check(
    run: RunOrPath,
    fail_if: Sequence[str] | str,
    *,
    baseline: RunOrPath | None = None,
) -> Results[GateOutcome]:
    """Check a run against rules such as `mean-cosine@norm.out > 0.5` or `isoscore < 0.9x`.

    A rule is a condition that must not be met. It is breached where the whole 95 % interval
    is beyond the limit, and a warning where only the value is. A breach does not raise: see
    `ok` and `summary` of the results. Of a series the last step is checked, against the first
    unless there is a baseline.
    """
    rules = [parse_rule(text) for text in ([fail_if] if isinstance(fail_if, str) else fail_if)]
    if not rules:
        raise ConfigError(
            "a check needs at least 1 rule, got 0",
            hint="give one with --fail-if 'mean-cosine > 0.5'",
            slug="check-without-rules",
        )
    relative = next((rule.text for rule in rules if rule.relative), None)
    checked = open_run(run)
    steps = series_steps(checked)
    if relative is not None and baseline is None and not steps:
        raise ConfigError(
            f"the rule {relative!r} needs a baseline, got none",
            hint="name the run to compare with: --baseline RUN",
            slug="rule-baseline",
        )
    sides = _sides(checked, rules, *steps[-1:])
    others: dict[str, Side] = {}
    if baseline is not None:
        other = open_run(baseline)
        others = _sides(other, rules, *series_steps(other)[-1:])
    elif steps:
        others = _sides(checked, rules, steps[0])
    gate = _Gate(sides, others)
    return Results((each for rule in rules for each in gate.outcomes(rule)), OUTCOMES)


def refuse(outcomes: Results[GateOutcome]) -> None:
    """Raise if a rule is breached, otherwise if one could not be checked."""
    if breached := _which(outcomes, "breached", "is breached", "are breached"):
        raise GateError(
            breached, hint="the table names site, value and limit", slug="check-breached"
        )
    not_run = "could not be checked"
    if unchecked := _which(outcomes, "could not run", not_run, not_run):
        raise ConfigError(
            unchecked,
            hint="survey the sites and measures of the rule, or correct the rule",
            slug="check-incomplete",
        )


def _which(outcomes: Results[GateOutcome], state: str, one: str, several: str) -> str:
    """Return how many rules are in a state, and the first of them; empty for none."""
    found = [each for each in outcomes if each.state == state]
    if not found:
        return ""
    count, total = (len({each.rule for each in part}) for part in (found, outcomes))
    rules = "rule" if total == 1 else "rules"
    first = f"{found[0].rule}: {found[0].message}"
    return f"{count} of {total} {rules} {one if count == 1 else several} ({first})"


def series_steps(run: Run) -> list[int]:
    """Return the steps of a run that follows a series, in order; none of any other run."""
    if run.origin.kind not in ("trajectory", "attention"):
        return []
    return sorted({each.step for each in run.readings if each.step is not None})


def _sides(run: Run, rules: Sequence[GateRule], step: int | None = None) -> dict[str, Side]:
    """Return the readings of a run, or of one step of it, in each variant that a rule names."""
    known = known_measures()
    names: dict[str, list[str]] = {}
    for rule in rules:
        names.setdefault(rule.variant, []).append(known[rule.measure])
    return {
        variant: Side.of(run, variant, tuple(dict.fromkeys(measures)), step)
        for variant, measures in names.items()
    }


class _Gate:
    """A run, perhaps a baseline, and how they are paired."""

    def __init__(self, sides: dict[str, Side], others: dict[str, Side]) -> None:
        self.sides, self.others = sides, others
        self.run = next(iter(sides.values())).run
        self.name = self.run.path.resolve().name
        self.how = pairing(self.run, next(iter(others.values())).run) if others else None

    def outcomes(self, rule: GateRule) -> Iterator[GateOutcome]:
        """Yield the outcome of a rule at each site it applies to."""
        side = self.sides[rule.variant]
        not_finite = {site: why for site, why in self.run.trouble.items() if rule.covers(site)}
        for site, why in not_finite.items():
            yield self._error(rule, site, f"{site} computed NaN or infinity at {why}")
        found = [
            each
            for each in side.readings.values()
            if each.measure == rule.measure and rule.covers(each.site)
        ]
        if not found and not not_finite:
            yield self._error(rule, "", self._why_nothing(rule, side))
        for reading in found:
            yield self._judge(rule, side, reading)

    def _judge(self, rule: GateRule, side: Side, reading: Reading) -> GateOutcome:
        if not isfinite(reading.value):
            why = f"{reading.measure} is {reading.value} at {reading.site}"
            return self._error(rule, reading.site, why)
        baseline, limit, text = None, rule.number, f"{rule.number:.4g}"
        if rule.relative:
            other = self.others[rule.variant]
            base = other.find(reading)
            if base is None or not isfinite(base.value):
                why = f"the baseline has no {reading.measure} at {reading.site}"
                return self._error(rule, reading.site, why)
            paired = self.how is not None and self.how.at(reading.site)
            gap, _ = gap_between(side, reading, other, base, paired=paired, times=rule.number)
            baseline, limit = base.value, rule.number * base.value
            text = f"{rule.number:g} x {base.value:.4g}"
        else:  # from a number that is known exactly
            ends = (reading.low, reading.high)
            low, high = (None if end is None else end - limit for end in ends)
            gap = Difference(reading.value - limit, low, high, None)
        state, message = _state(rule, gap, text)
        return GateOutcome(
            rule=rule.text,
            run=self.name,
            site=reading.site,
            variant=reading.variant,
            measure=reading.measure,
            state=state,
            value=reading.value,
            low=reading.low,
            high=reading.high,
            limit=limit,
            baseline=baseline,
            margin=gap.value,
            margin_low=gap.low,
            margin_high=gap.high,
            message=f"{reading.site}: {reading.value:.4g}, {message}",
        )

    def _error(self, rule: GateRule, site: str, why: str) -> GateOutcome:
        place = (self.name, site, rule.variant, rule.measure)
        return GateOutcome(rule.text, *place, "could not run", why)

    def _why_nothing(self, rule: GateRule, side: Side) -> str:
        there = dict.fromkeys(each.site for each in self.run.readings)
        if not any(rule.covers(site) for site in there):
            error = unknown("site", rule.site, there)
            return f"{error.problem}; {error.hint}"
        at = "" if rule.site == "*" else f" at {rule.site}"
        return f"the run has no {rule.measure}{at} in variant {side.variant}"


def _state(rule: GateRule, gap: Difference, limit: str) -> tuple[str, str]:
    """Return the state of a rule at this distance from the limit, and the reason."""
    side = "above" if rule.sign.startswith(">") else "below"
    if not rule.beyond(gap.value):
        return "holds", f"not {side} {limit}"
    nearest = gap.low if side == "above" else gap.high
    if nearest is None:
        return "breached", f"{side} {limit}; there is no interval to judge noise"
    if not rule.beyond(nearest):
        return "warning", f"{side} {limit}, but within noise"
    return "breached", f"{side} {limit} with its whole interval"

"""The verb of gates: rules that a run must not break."""

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import TYPE_CHECKING

from isoscope.comparison.pairing import Pairing, pairing
from isoscope.comparison.rule import Rule, known_measures, parsed
from isoscope.comparison.side import Folder, Side, gap_between, opened
from isoscope.errors import ConfigError, GateError, IsoscopeError
from isoscope.types import Outcome, Reading

if TYPE_CHECKING:
    from isoscope.display import Results
    from isoscope.measures.difference import Difference
    from isoscope.store import Run


def check(
    run: "Folder | Run",
    fail_if: Sequence[str] | str,
    *,
    baseline: "Folder | Run | None" = None,
) -> "Results[Outcome]":
    """Check a run against rules such as `mean-cosine@norm.out > 0.5` or `isoscore < 0.9x`.

    A rule says what must not be. It is breached where the whole 95 % interval lies beyond
    the limit, and a warning where only the value does. Nothing is raised for a breach: see
    `ok` and `summary` of what is returned.
    """
    from isoscope.comparison.outcomes import OUTCOMES
    from isoscope.display import Results

    rules = [parsed(text) for text in ([fail_if] if isinstance(fail_if, str) else fail_if)]
    if not rules:
        raise ConfigError(
            "a check needs at least 1 rule, got 0",
            hint="give one with --fail-if 'mean-cosine > 0.5'",
            slug="check-without-rules",
        )
    relative = next((rule.text for rule in rules if rule.relative), None)
    if relative is not None and baseline is None:
        raise ConfigError(
            f"the rule {relative!r} needs a baseline, got none",
            hint="name the run to compare with: --baseline RUN",
            slug="rule-baseline",
        )
    sides = _sides(opened(run), rules)
    others = {} if baseline is None else _sides(opened(baseline), rules)
    gate = _Gate(sides, others)
    found = (outcome for rule in rules for outcome in gate.outcomes(rule))
    return Results(found, OUTCOMES)


def refuse(outcomes: "Results[Outcome]") -> None:
    """Raise where a rule is breached, or could not be checked; a breach counts more."""
    if breached := _which(outcomes, "breached"):
        raise GateError(
            f"{breached} are breached",
            hint="the table names site, value and limit",
            slug="check-breached",
        )
    if stuck := _which(outcomes, "could not run"):
        raise ConfigError(
            f"{stuck} could not be checked",
            hint="survey what the rule asks for, or correct the rule",
            slug="check-incomplete",
        )


def _which(outcomes: "Results[Outcome]", state: str) -> str:
    """Return how many rules are in a state, with the first of them; nothing for none."""
    found = {each.rule: each for each in reversed(outcomes) if each.state == state}
    if not found:
        return ""
    first = next(each for each in outcomes if each.state == state)
    rules = len({each.rule for each in outcomes})
    return f"{len(found)} of {rules} rules ({first.rule}: {first.message})"


def _sides(run: "Run", rules: Sequence[Rule]) -> dict[str, Side]:
    """Return the readings of a run in each variant that a rule is about."""
    known = known_measures()
    sides: dict[str, Side] = {}
    for variant in dict.fromkeys(rule.variant for rule in rules):
        names = [known[rule.measure] for rule in rules if rule.variant == variant]
        sides[variant] = Side.of(run, variant, tuple(dict.fromkeys(names)))
    return sides


class _Gate:
    """A run, perhaps a baseline, and how they hang together."""

    def __init__(self, sides: dict[str, Side], others: dict[str, Side]) -> None:
        self.sides, self.others = sides, others
        self.run = next(iter(sides.values())).run
        self.how: Pairing | None = None
        if others:
            self.how = pairing(self.run, next(iter(others.values())).run)

    def outcomes(self, rule: Rule) -> Iterator[Outcome]:
        """Yield what becomes of a rule at each site it is about."""
        side = self.sides[rule.variant]
        spoilt = {site: why for site, why in self.run.trouble.items() if rule.covers(site)}
        for site, why in spoilt.items():
            yield self._stuck(rule, site, f"{site} computed NaN or infinity at {why}")
        found = [
            each
            for each in side.readings.values()
            if each.measure == rule.measure and rule.covers(each.site)
        ]
        if not found and not spoilt:
            yield self._stuck(rule, "", self._why_nothing(rule, side))
        for reading in found:
            yield self._judged(rule, side, reading)

    def _judged(self, rule: Rule, side: Side, reading: Reading) -> Outcome:
        if not isfinite(reading.value):
            why = f"{reading.measure} is {reading.value} at {reading.site}"
            return self._stuck(rule, reading.site, why)
        if not rule.relative:
            return self._told(rule, reading, None, rule.number, _shifted(reading, rule.number))
        other = self.others[rule.variant]
        base = other.readings.get((reading.site, reading.step, reading.measure))
        if base is None or not isfinite(base.value):
            why = f"the baseline has no {reading.measure} at {reading.site}"
            return self._stuck(rule, reading.site, why)
        paired = self.how is not None and self.how.at(reading.site)
        gap, _ = gap_between(side, reading, other, base, paired=paired, times=rule.number)
        return self._told(rule, reading, base.value, rule.number * base.value, gap)

    def _told(
        self,
        rule: Rule,
        reading: Reading,
        baseline: float | None,
        limit: float,
        gap: "Difference",
    ) -> Outcome:
        stated = f"{limit:.4g}" if baseline is None else f"{rule.number:g} x {baseline:.4g}"
        state, message = _state(rule, gap, stated)
        return Outcome(
            rule=rule.text,
            run=self._name,
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

    def _stuck(self, rule: Rule, site: str, why: str) -> Outcome:
        place = (self._name, site, rule.variant, rule.measure)
        return Outcome(rule.text, *place, "could not run", why)

    @property
    def _name(self) -> str:
        return self.run.path.resolve().name

    def _why_nothing(self, rule: Rule, side: Side) -> str:
        from isoscope.registry import unknown

        there = dict.fromkeys(each.site for each in self.run.readings)
        if not any(rule.covers(site) for site in there):
            error: IsoscopeError = unknown("site", rule.site, there)
            return f"{error.problem}; {error.hint}"
        at = "" if rule.site == "*" else f" at {rule.site}"
        return f"the run has no {rule.measure}{at} in variant {side.variant}"


def _shifted(reading: Reading, limit: float) -> "Difference":
    """Return how far a reading lies above a number that is known exactly."""
    from isoscope.measures.difference import Difference

    low, high = (None if end is None else end - limit for end in (reading.low, reading.high))
    return Difference(reading.value - limit, low, high, None)


def _state(rule: Rule, gap: "Difference", limit: str) -> tuple[str, str]:
    """Return what a distance from the limit means for a rule, and the reason."""
    side = "above" if rule.sign.startswith(">") else "below"
    if not rule.beyond(gap.value):
        return "holds", f"not {side} {limit}"
    nearest = gap.low if side == "above" else gap.high
    if nearest is None:
        return "breached", f"{side} {limit}; no interval to tell noise from it"
    if not rule.beyond(nearest):
        return "warning", f"{side} {limit}, but within noise"
    return "breached", f"{side} {limit} with its whole interval"

"""The layout of outcomes: what became of the rules of a check."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from math import isfinite

from isoscope.display.escape import for_markdown, plain
from isoscope.display.frames import Line, numbers, texts
from isoscope.display.number import shown
from isoscope.display.results import Layout, Results
from isoscope.display.table import Column, Table
from isoscope.types import Outcome

WORST_FIRST = ("breached", "could not run", "warning", "holds")
CODES = {"breached": 1, "could not run": 2, "warning": 0, "holds": 0}
MOST = 20  # sites of a rule that are shown one by one
MARKS = {"breached": "❌", "could not run": "❓", "warning": "⚠️", "holds": "✅"}


def worst(outcomes: Iterable[Outcome]) -> str:
    """Return the worst state of all, which decides the check."""
    states = {each.state for each in outcomes}
    return next((state for state in WORST_FIRST if state in states), "holds")


def exit_code(outcomes: Iterable[Outcome]) -> int:
    """Return 0 where all rules hold, 1 where one is breached, 2 where one could not run."""
    return CODES[worst(outcomes)]


def by_rule(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    """Return the outcomes of each rule, in the order of the rules."""
    found: dict[str, list[Outcome]] = {}
    for each in outcomes:
        found.setdefault(each.rule, []).append(each)
    return found


def summary(outcomes: Iterable[Outcome]) -> str:
    """How many rules hold, in a sentence."""
    states = [worst(each) for each in by_rule(outcomes).values()]
    parts = [f"{states.count(state)} {state}" for state in WORST_FIRST if state in states]
    return f"{len(states)} rule{'s' if len(states) != 1 else ''}: {', '.join(parts)}"


def _tables(outcomes: Sequence[Outcome]) -> tuple[Table, ...]:
    """One line per site where a rule does not hold, and one for those where it does."""
    lines = [line for each in by_rule(outcomes).values() for line in _lines(each)]
    cells = list(zip(*lines, strict=True))
    heads = ("rule", "verdict", "site", "value", "95 % interval", "limit", "what")
    words = {"rule": 14, "verdict": 8, "site": 12, "what": 24}  # and their narrowest widths
    columns = [
        Column(head, column, words=head in words, fold=words.get(head))
        for head, column in zip(heads, cells, strict=False)
    ]
    variants = {each.variant for each in outcomes}
    caption = f"run {outcomes[0].run}" if outcomes else ""
    if len(variants) == 1:
        caption += f", variant {outcomes[0].variant}"
    stuck = [each for each in outcomes if each.state == "could not run"]
    return (
        Table(
            plain(caption),
            tuple(each for each in columns if any(each.cells)),
            left_out=tuple(plain(f"{each.rule}: {each.message}") for each in stuck),
        ),
    )


def _heading(outcomes: Results[Outcome]) -> str:
    """The verdict: Markdown is the summary on the page of a CI run."""
    run = for_markdown(outcomes[0].run) if outcomes else ""
    mark = MARKS[worst(outcomes)]
    return f"### {mark} isoscope check {run}\n\n{for_markdown(outcomes.summary)}.\n\n"


def _lines(outcomes: list[Outcome]) -> list[tuple[str, ...]]:
    """The lines of one rule, worst first."""
    bad = [each for each in outcomes if each.state != "holds"]
    bad.sort(key=lambda each: WORST_FIRST.index(each.state))
    lines = [_line(each, _reason(each)) for each in bad[:MOST]]
    if len(bad) > MOST:
        rule = plain(bad[0].rule)
        lines.append((rule, bad[-1].state, "…", "", "", "", f"{len(bad) - MOST} more sites"))
    held = [each for each in outcomes if each.state == "holds"]
    if held:
        nearest = min(held, key=lambda each: abs(each.margin or 0.0))
        of = f"nearest of {len(held)} sites" if len(held) > 1 else ""
        lines.append(_line(nearest, of))
    return lines


def _reason(outcome: Outcome) -> str:
    """What the other columns do not say."""
    if outcome.state == "warning":
        return "within noise"
    alone = outcome.state == "breached" and outcome.margin_low is None
    return "no interval" if alone else ""


def _line(outcome: Outcome, what: str) -> tuple[str, ...]:
    value, interval, limit = "", "", ""
    if outcome.value is not None:
        value, interval = shown(outcome.value, outcome.low, outcome.high)
    if outcome.limit is not None:
        limit = f"{outcome.limit:.4g}"
    site = plain(outcome.site)
    return plain(outcome.rule), outcome.state, site, value, interval, limit, what


def _record(outcome: Outcome) -> Line:
    """An outcome as JSON knows it: NaN and infinity are null."""
    return {
        key: None if isinstance(value, float) and not isfinite(value) else value
        for key, value in asdict(outcome).items()
    }


def _failed(outcome: Outcome) -> bool:
    return CODES[outcome.state] > 0


OUTCOMES = Layout(
    name="outcomes",
    tables=_tables,
    to_dict=_record,
    fields=(
        *texts("rule", "run", "site", "variant", "measure", "state", "message"),
        *numbers("value", "low", "high", "limit", "baseline"),
        *numbers("margin", "margin_low", "margin_high"),
    ),
    summary=summary,
    heading=_heading,
    failed=_failed,
)

"""The outcomes of a check as tables, as a summary for CI, and as JUnit XML."""

from collections.abc import Iterable, Sequence
from xml.etree import ElementTree

from isoscope.display import (
    Column,
    RecordLayout,
    Results,
    Table,
    for_markdown,
    format_value,
    line_of,
    non_empty,
    numbers,
    plain,
    texts,
)
from isoscope.types import GateOutcome

WORST_FIRST = ("breached", "could not run", "warning", "holds")
FAILS = ("breached", "could not run")
MOST = 20  # sites of a rule that have their own line
MARKS = {"breached": "❌", "could not run": "❓", "warning": "⚠️", "holds": "✅"}


def worst(outcomes: Iterable[GateOutcome]) -> str:
    """Return the worst state, which decides the check."""
    states = {each.state for each in outcomes}
    return next((state for state in WORST_FIRST if state in states), "holds")


def by_rule(outcomes: Iterable[GateOutcome]) -> dict[str, list[GateOutcome]]:
    """Return the outcomes of each rule, in the order of the rules."""
    found: dict[str, list[GateOutcome]] = {}
    for each in outcomes:
        found.setdefault(each.rule, []).append(each)
    return found


def summary(outcomes: Iterable[GateOutcome]) -> str:
    """Return the number of rules in each state, as a sentence."""
    states = [worst(each) for each in by_rule(outcomes).values()]
    parts = [f"{states.count(state)} {state}" for state in WORST_FIRST if state in states]
    return f"{len(states)} rule{'s' if len(states) != 1 else ''}: {', '.join(parts)}"


def _tables(outcomes: Sequence[GateOutcome]) -> tuple[Table, ...]:
    """One line per site where a rule does not hold, and one for all other sites."""
    lines = [line for each in by_rule(outcomes).values() for line in _lines(each)]
    cells = list(zip(*lines, strict=True))
    heads = ("rule", "verdict", "site", "value", "95 % interval", "limit", "what")
    words = {"rule": 14, "verdict": 8, "site": 12, "what": 24}  # and their narrowest widths
    columns = [
        Column(head, column, words=head in words, fold=words.get(head))
        for head, column in zip(heads, cells, strict=False)
    ]
    caption = f"run {outcomes[0].run}" if outcomes else ""
    if len({each.variant for each in outcomes}) == 1:
        caption += f", variant {outcomes[0].variant}"
    stuck = [each for each in outcomes if each.state == "could not run"]
    skipped = tuple(plain(f"{each.rule}: {each.message}") for each in stuck)
    return (Table(plain(caption), non_empty(columns), left_out=skipped),)


def _heading(outcomes: Results[GateOutcome]) -> str:
    """The verdict above the tables of Markdown, which CI systems show as the summary."""
    run = for_markdown(outcomes[0].run) if outcomes else ""
    mark = MARKS[worst(outcomes)]
    return f"### {mark} isoscope check {run}\n\n{for_markdown(outcomes.summary)}.\n\n"


def _lines(outcomes: list[GateOutcome]) -> list[tuple[str, ...]]:
    """Return the lines of one rule, worst first."""
    bad = [each for each in outcomes if each.state != "holds"]
    bad.sort(key=lambda each: WORST_FIRST.index(each.state))
    lines = [_line(each, _reason(each)) for each in bad[:MOST]]
    if len(bad) > MOST:
        rule = plain(bad[0].rule)
        lines.append((rule, bad[-1].state, "…", "", "", "", f"{len(bad) - MOST} more sites"))
    good = [each for each in outcomes if each.state == "holds"]
    if good:
        nearest = min(good, key=lambda each: abs(each.margin or 0.0))
        of = f"nearest of {len(good)} sites" if len(good) > 1 else ""
        lines.append(_line(nearest, of))
    return lines


def _reason(outcome: GateOutcome) -> str:
    """Return what the other columns do not show."""
    if outcome.state == "warning":
        return "within noise"
    alone = outcome.state == "breached" and outcome.margin_low is None
    return "no interval" if alone else ""


def _line(outcome: GateOutcome, what: str) -> tuple[str, ...]:
    value = outcome.value
    shown = ("", "") if value is None else format_value(value, outcome.low, outcome.high)
    limit = "" if outcome.limit is None else f"{outcome.limit:.4g}"
    return plain(outcome.rule), outcome.state, plain(outcome.site), *shown, limit, what


def _fails(outcome: GateOutcome) -> bool:
    return outcome.state in FAILS


OUTCOMES = RecordLayout(
    name="outcomes",
    tables=_tables,
    to_dict=line_of,
    fields=(
        *texts("rule", "run", "site", "variant", "measure", "state", "message"),
        *numbers("value", "low", "high", "limit", "baseline"),
        *numbers("margin", "margin_low", "margin_high"),
    ),
    summary=summary,
    heading=_heading,
    failed=_fails,
)


# --- JUnit XML ----------------------------------------------------------------------------
def as_junit(outcomes: Sequence[GateOutcome]) -> str:
    """JUnit XML with one test case per rule and site; breaches are failures.

    Rules that could not run are errors. XML cannot contain control characters, not even
    escaped: names are made printable first.
    """
    states = [each.state for each in outcomes]
    counts = {
        "tests": str(len(outcomes)),
        "failures": str(states.count("breached")),
        "errors": str(states.count("could not run")),
        "time": "0",
    }
    top = ElementTree.Element("testsuites", {"name": "isoscope check", **counts})
    name = outcomes[0].run if outcomes else "isoscope check"
    suite = ElementTree.SubElement(top, "testsuite", {"name": plain(name), **counts})
    for each in outcomes:
        _case(suite, each)
    ElementTree.indent(top)
    body = ElementTree.tostring(top, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _case(suite: ElementTree.Element, outcome: GateOutcome) -> None:
    names = {
        "classname": plain(outcome.rule),
        "name": plain(f"{outcome.site or 'any site'}/{outcome.variant}"),
        "time": "0",
    }
    case = ElementTree.SubElement(suite, "testcase", names)
    message = plain(outcome.message)
    kinds = {"breached": "failure", "could not run": "error"}
    if outcome.state in kinds:
        details = {"message": message, "type": outcome.state}
        ElementTree.SubElement(case, kinds[outcome.state], details).text = message
    elif outcome.state == "warning":
        ElementTree.SubElement(case, "system-out").text = f"warning: {message}"

"""Outcomes as tables, for CI and as JUnit XML."""

import json
from xml.etree import ElementTree

import pytest

from isoscope.comparison.outcomes import OUTCOMES, as_junit, by_rule, worst
from isoscope.display import Results
from isoscope.types import GateOutcome

RULES = ("mean-cosine > 0.5", "isoscore < 0.9x", "twonn > 5")


def outcome(rule=RULES[0], site="embed", state="holds", message="", value=0.4, **other):
    numbers = {"low": value - 0.1, "high": value + 0.1, "limit": 0.5, "margin": value - 0.5}
    ends = {"margin_low": value - 0.6, "margin_high": value - 0.4}
    measure = rule.split()[0]
    place = {"run": "nightly", "site": site, "variant": "all", "measure": measure}
    fields = {"rule": rule, **place, "state": state, "message": message, "value": value}
    return GateOutcome(**{**fields, **numbers, **ends, **other})


@pytest.fixture
def outcomes():
    return Results(
        [
            outcome(),
            outcome(site="resid.0", value=0.1),
            outcome(
                site="norm.out", state="breached", value=0.7,
                message="norm.out: 0.7, above 0.5 with its whole interval",
            ),
            outcome(RULES[1], state="warning", value=0.45, baseline=0.56,
                    message="embed: 0.45, below 0.9 x 0.56, but within noise"),
            GateOutcome(RULES[2], "nightly", "", "all", "twonn", "could not run", "no twonn"),
        ],
        OUTCOMES,
    )  # fmt: skip


MARKDOWN = """\
### ❌ isoscope check nightly

3 rules: 1 breached, 1 could not run, 1 warning.

run nightly, variant all

| rule | verdict | site | value | 95 % interval | limit | what |
| :-- | :-- | :-- | --: | --: | --: | :-- |
| mean-cosine &gt; 0.5 | breached | norm.out | 0.70 | [0.60, 0.80] | 0.5 |  |
| mean-cosine &gt; 0.5 | holds | embed | 0.40 | [0.30, 0.50] | 0.5 | nearest of 2 sites |
| isoscore &lt; 0.9x | warning | embed | 0.45 | [0.35, 0.55] | 0.5 | within noise |
| twonn &gt; 5 | could not run |  |  |  |  |  |

- skipped: twonn &gt; 5: no twonn
"""


def test_markdown(outcomes):
    assert outcomes.to_markdown() == MARKDOWN


def test_json(outcomes):
    lines = [json.loads(line) for line in outcomes.to_json().splitlines()]
    assert len(lines) == 5
    assert lines[2] == {
        "rule": "mean-cosine > 0.5", "run": "nightly", "site": "norm.out", "variant": "all",
        "measure": "mean-cosine", "state": "breached",
        "message": "norm.out: 0.7, above 0.5 with its whole interval", "value": 0.7,
        "low": 0.7 - 0.1, "high": 0.7 + 0.1, "limit": 0.5, "baseline": None,
        "margin": 0.7 - 0.5, "margin_low": 0.7 - 0.6, "margin_high": 0.7 - 0.4,
    }  # fmt: skip
    assert lines[4]["value"] is None


def test_the_worst_decides(outcomes):
    assert (worst(outcomes), outcomes.ok) == ("breached", False)
    rest = outcomes.with_records(each for each in outcomes if each.state != "breached")
    assert (worst(rest), rest.ok) == ("could not run", False)
    rest = outcomes.with_records(each for each in rest if each.state != "could not run")
    assert (worst(rest), rest.ok) == ("warning", True)
    assert Results([], OUTCOMES).ok


def test_outcomes_are_filed_by_rule(outcomes):
    assert {rule: len(found) for rule, found in by_rule(outcomes).items()} == {
        RULES[0]: 3, RULES[1]: 1, RULES[2]: 1,
    }  # fmt: skip


def test_text_and_html_show_the_same_rows(outcomes):
    for text in (str(outcomes), outcomes._repr_html_()):
        for word in ("norm.out", "breached", "[0.60, 0.80]", "nearest of 2 sites"):
            assert word in text


def test_what_is_no_number_is_null():
    (line,) = Results([outcome(low=float("-inf"))], OUTCOMES).to_json().splitlines()
    assert json.loads(line)["low"] is None


def test_hostile_names_are_shown_and_not_obeyed():
    name = "a\x1b[2J|<img src=x onerror=y>\n"
    bad = outcome(site=name, state="breached", message=name, run=name)
    hostile = Results([bad], OUTCOMES)
    for text in (str(hostile), hostile.to_markdown(), hostile._repr_html_()):
        assert "\x1b" not in text
    assert "<img" not in hostile.to_markdown() + hostile._repr_html_()


GOLDEN = """\
<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="isoscope check" tests="4" failures="1" errors="1" time="0">
  <testsuite name="nightly" tests="4" failures="1" errors="1" time="0">
    <testcase classname="isoscore &lt; 0.9x" name="embed/all" time="0" />
    <testcase classname="isoscore &lt; 0.9x" name="resid.0/all" time="0">
      <failure message="resid.0: low" type="breached">resid.0: low</failure>
    </testcase>
    <testcase classname="isoscore &lt; 0.9x" name="resid.1/all" time="0">
      <system-out>warning: resid.1: nearly</system-out>
    </testcase>
    <testcase classname="twonn &gt; 5" name="any site/no-sink" time="0">
      <error message="no twonn" type="could not run">no twonn</error>
    </testcase>
  </testsuite>
</testsuites>
"""


def case_outcome(site, state, message, rule="isoscore < 0.9x", variant="all", run="nightly"):
    return GateOutcome(rule, run, site, variant, rule.split()[0], state, message)


def test_failures_are_breaches_and_errors_could_not_run():
    outcomes = [
        case_outcome("embed", "holds", ""),
        case_outcome("resid.0", "breached", "resid.0: low"),
        case_outcome("resid.1", "warning", "resid.1: nearly"),
        case_outcome("", "could not run", "no twonn", "twonn > 5", "no-sink"),
    ]
    assert as_junit(outcomes) == GOLDEN


def test_names_that_xml_cannot_hold_are_written_out():
    name = 'a\x00\x1b[2J\x0b</testcase><x> & "q" \udcff \ufffe \u202e'
    text = as_junit([case_outcome(name, "breached", name, run=name)])
    top = ElementTree.fromstring(text.encode())
    case = top.find("testsuite/testcase")
    assert case is not None and len(top.findall(".//x")) == 0
    assert case.get("name").startswith(r"a\x00\x1b[2J\x0b</testcase><x> & ")
    assert case.find("failure").text.endswith(r"\udcff \ufffe \u202e")


def test_nothing_is_an_empty_suite():
    top = ElementTree.fromstring(as_junit([]).encode())
    assert top.find("testsuite").get("tests") == "0"

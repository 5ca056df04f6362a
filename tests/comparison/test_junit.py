"""JUnit XML that every reader takes, whatever is in the names."""

from xml.etree import ElementTree

from isoscope.comparison.junit import as_junit
from isoscope.types import Outcome

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


def outcome(site, state, message, rule="isoscore < 0.9x", variant="all", run="nightly"):
    return Outcome(rule, run, site, variant, rule.split()[0], state, message)


def test_failures_are_breaches_and_errors_could_not_run():
    outcomes = [
        outcome("embed", "holds", ""),
        outcome("resid.0", "breached", "resid.0: low"),
        outcome("resid.1", "warning", "resid.1: nearly"),
        outcome("", "could not run", "no twonn", "twonn > 5", "no-sink"),
    ]
    assert as_junit(outcomes) == GOLDEN


def test_names_that_xml_cannot_hold_are_written_out():
    name = 'a\x00\x1b[2J\x0b</testcase><x> & "q" \udcff \ufffe \u202e'
    text = as_junit([outcome(name, "breached", name, run=name)])
    top = ElementTree.fromstring(text.encode())
    case = top.find("testsuite/testcase")
    assert case is not None and len(top.findall(".//x")) == 0
    assert case.get("name").startswith(r"a\x00\x1b[2J\x0b</testcase><x> & ")
    assert case.find("failure").text.endswith(r"\udcff \ufffe \u202e")


def test_nothing_is_an_empty_suite():
    top = ElementTree.fromstring(as_junit([]).encode())
    assert top.find("testsuite").get("tests") == "0"

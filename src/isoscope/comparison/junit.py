"""JUnit XML, which the pages of CI systems show: a test case for each rule and site."""

from collections.abc import Sequence
from xml.etree import ElementTree

from isoscope.display.escape import plain
from isoscope.types import Outcome


def as_junit(outcomes: Sequence[Outcome]) -> str:
    """A document whose failures are breaches and whose errors are what could not run.

    XML cannot hold control characters, not even escaped: names are written out first.
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


def _case(suite: ElementTree.Element, outcome: Outcome) -> None:
    names = {
        "classname": plain(outcome.rule),
        "name": plain(f"{outcome.site or 'any site'}/{outcome.variant}"),
        "time": "0",
    }
    case = ElementTree.SubElement(suite, "testcase", names)
    message = plain(outcome.message)
    kinds = {"breached": "failure", "could not run": "error"}
    if outcome.state in kinds:
        told = {"message": message, "type": outcome.state}
        ElementTree.SubElement(case, kinds[outcome.state], told).text = message
    elif outcome.state == "warning":
        ElementTree.SubElement(case, "system-out").text = f"warning: {message}"

"""The library call behind each command."""

from isoscope.verbs.demo import demo
from isoscope.verbs.figure import figure
from isoscope.verbs.load import load
from isoscope.verbs.model import survey
from isoscope.verbs.module import survey_module
from isoscope.verbs.report import report
from isoscope.verbs.runs import merge, read
from isoscope.verbs.vectors import measure

__all__ = [
    "demo",
    "figure",
    "load",
    "measure",
    "merge",
    "read",
    "report",
    "survey",
    "survey_module",
]

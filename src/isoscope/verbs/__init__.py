"""The library call behind each command."""

from isoscope.verbs.check import check
from isoscope.verbs.compare import compare
from isoscope.verbs.demo import demo
from isoscope.verbs.model import survey
from isoscope.verbs.module import survey_module
from isoscope.verbs.runs import merge, read
from isoscope.verbs.vectors import measure

__all__ = [
    "check",
    "compare",
    "demo",
    "measure",
    "merge",
    "read",
    "survey",
    "survey_module",
]

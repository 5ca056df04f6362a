"""The library call behind each command."""

from isoscope.verbs.demo import demo
from isoscope.verbs.explain import explain
from isoscope.verbs.model import survey
from isoscope.verbs.module import survey_module
from isoscope.verbs.runs import merge, read
from isoscope.verbs.vectors import measure

__all__ = ["demo", "explain", "measure", "merge", "read", "survey", "survey_module"]

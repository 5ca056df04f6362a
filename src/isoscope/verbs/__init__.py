"""The library call behind each command."""

from isoscope.verbs.model import survey
from isoscope.verbs.runs import merge, read
from isoscope.verbs.vectors import demo, measure

__all__ = ["demo", "measure", "merge", "read", "survey"]

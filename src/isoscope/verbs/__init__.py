"""The library call behind each command."""

from isoscope.verbs.check import check
from isoscope.verbs.compare import compare
from isoscope.verbs.demo import demo
from isoscope.verbs.dimensions import dimensions
from isoscope.verbs.explain import explain
from isoscope.verbs.figure import figure
from isoscope.verbs.load import load
from isoscope.verbs.matrices import matrices
from isoscope.verbs.model import survey, survey_module
from isoscope.verbs.norm import norm
from isoscope.verbs.probe import probe
from isoscope.verbs.report import report
from isoscope.verbs.runs import merge, read
from isoscope.verbs.sweep import sweep
from isoscope.verbs.vectors import measure
from isoscope.verbs.zero import zero

__all__ = [
    "check",
    "compare",
    "demo",
    "dimensions",
    "explain",
    "figure",
    "load",
    "matrices",
    "measure",
    "merge",
    "norm",
    "probe",
    "read",
    "report",
    "survey",
    "survey_module",
    "sweep",
    "zero",
]

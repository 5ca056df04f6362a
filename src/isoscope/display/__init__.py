"""Records turned into something to look at; knows records, not models."""

from isoscope.report.readings import READINGS
from isoscope.report.results import Layout, Results

__all__ = ["READINGS", "Layout", "Results"]

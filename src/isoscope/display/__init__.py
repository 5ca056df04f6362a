"""Records turned into something to look at; knows records, not models."""

from isoscope.display.readings import READINGS
from isoscope.display.results import Layout, Results

__all__ = ["READINGS", "Layout", "Results"]

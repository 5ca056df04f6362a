"""Records turned into tables, files and pages; knows records, not models."""

from isoscope.display.readings import READINGS
from isoscope.display.results import RecordLayout, Results

__all__ = ["READINGS", "RecordLayout", "Results"]

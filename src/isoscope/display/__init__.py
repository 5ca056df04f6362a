"""Records turned into tables, files and pages; knows records, not models."""

from isoscope.display.formats import as_html
from isoscope.display.frames import (
    Field,
    Line,
    Record,
    Value,
    integers,
    line_of,
    numbers,
    texts,
)
from isoscope.display.number import count, format_value, short
from isoscope.display.readings import READINGS, USUAL, usual_measures
from isoscope.display.results import DATA, RecordLayout, Results
from isoscope.display.table import Column, Table, non_empty, warning_column
from isoscope.display.wide import SiteReadings, side_by_side
from isoscope.escape import for_html, for_markdown, plain

__all__ = [
    "DATA",
    "READINGS",
    "USUAL",
    "Column",
    "Field",
    "Line",
    "Record",
    "RecordLayout",
    "Results",
    "SiteReadings",
    "Table",
    "Value",
    "as_html",
    "count",
    "for_html",
    "for_markdown",
    "format_value",
    "integers",
    "line_of",
    "non_empty",
    "numbers",
    "plain",
    "short",
    "side_by_side",
    "texts",
    "usual_measures",
    "warning_column",
]

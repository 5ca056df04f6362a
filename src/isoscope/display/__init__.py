"""Records turned into tables, files and pages; knows records, not models."""

from isoscope.display.formats import as_html
from isoscope.display.frames import (
    Field,
    Line,
    Record,
    TaggedRecord,
    Value,
    integers,
    line_of,
    numbers,
    texts,
    whole_line,
)
from isoscope.display.number import count, format_value, short
from isoscope.display.readings import (
    READINGS,
    USUAL,
    count_warnings,
    layout_with,
    shown_as,
    usual_measures,
    value_cell,
)
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
    "TaggedRecord",
    "Value",
    "as_html",
    "count",
    "count_warnings",
    "for_html",
    "for_markdown",
    "format_value",
    "integers",
    "layout_with",
    "line_of",
    "non_empty",
    "numbers",
    "plain",
    "short",
    "shown_as",
    "side_by_side",
    "texts",
    "usual_measures",
    "value_cell",
    "warning_column",
    "whole_line",
]

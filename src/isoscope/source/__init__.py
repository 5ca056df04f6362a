"""Where vectors come from: files, folders, streams and memory, in chunks of rows."""

from isoscope.source.open_vectors import OPENERS, open_source
from isoscope.source.row_source import RowSource

SUFFIXES = tuple(OPENERS)

__all__ = ["SUFFIXES", "RowSource", "open_source"]

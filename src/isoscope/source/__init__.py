"""Where vectors come from: files, folders, streams and memory, in chunks of rows."""

from isoscope.source.file import OPENERS
from isoscope.source.open import open_source
from isoscope.source.source import Source

SUFFIXES = tuple(OPENERS)

__all__ = ["SUFFIXES", "Source", "open_source"]

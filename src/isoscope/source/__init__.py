"""Where vectors come from: files, folders, streams and memory, in chunks of rows."""

from isoscope.source.file import OPENERS
from isoscope.source.open import open_source
from isoscope.source.sift import bad_rows, ordinals, refuse, without
from isoscope.source.source import Source

SUFFIXES = tuple(OPENERS)

__all__ = ["SUFFIXES", "Source", "bad_rows", "open_source", "ordinals", "refuse", "without"]

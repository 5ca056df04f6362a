"""The text that is read where no corpus is named: public-domain speeches and plays."""

from importlib.resources import as_file, files

from isoscope.source.corpus.held import OnDisk, Spooled, spooled
from isoscope.source.corpus.lines import open_lines
from isoscope.source.corpus.pieces import Pieces
from isoscope.source.corpus.wanted import Wanted

NAME = "bundled"
PLACE = "the bundled text"


def open_default(wanted: Wanted) -> Pieces:
    """The bundled text, a document per line."""
    return open_lines(_held(), NAME, wanted)


def _held() -> OnDisk | Spooled:
    text = files("isoscope.source.corpus") / "bundled" / "text.txt"
    with as_file(text) as path:
        if path == text:  # a plain file; out of a zipped package it is gone after this block
            return OnDisk(path, PLACE)
        with path.open("rb") as stream:
            return spooled(stream, PLACE)

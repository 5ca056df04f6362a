"""Text, a document per file."""

from collections.abc import Sequence
from pathlib import Path

from isoscope.errors import DocumentError
from isoscope.source.border import border
from isoscope.source.corpus.document import Document
from isoscope.source.corpus.fault import (
    MAX_DOCUMENT,
    BadEncodingError,
    bad_document,
    columns_given,
    too_large,
)
from isoscope.source.corpus.files import Files
from isoscope.source.corpus.held import OnDisk, Spooled, unpacked
from isoscope.source.corpus.lines import decoded, plain_text
from isoscope.source.corpus.pieces import Fields, Layout, Piece, Pieces
from isoscope.source.corpus.wanted import Wanted
from isoscope.source.lines import BOM


class WholeFiles(Files):
    """Text files, each one document; those that hold nothing are dropped and counted."""

    def __init__(self, paths: Sequence[Path], root: Path | None, wanted: Wanted) -> None:
        super().__init__("text", paths, root)
        for column in wanted.columns:
            raise columns_given(self.place, column)
        kept: list[Path] = []
        for path in paths:
            try:
                blank = not content(path).strip()
            except DocumentError:
                if not wanted.skip_bad:
                    raise
                self.dropped.add("documents that cannot be read", str(path))
                continue
            if blank:
                self.dropped.add("empty files", str(path))
            else:
                kept.append(path)
        self.keep(kept)

    def document(self, ordinal: int) -> Document:
        """Read one file."""
        path = self.path(ordinal)
        return Document(self.id(ordinal), content(path), place=str(path))


def content(path: Path) -> str:
    """The text of a file, unpacked if it is a gzip file."""
    held = unpacked(path) if path.suffix.lower() == ".gz" else OnDisk(path)
    return whole(held)


def whole(held: OnDisk | Spooled) -> str:
    """All that is held, as text."""
    plain_text(held)
    with border(held.place), held.open() as stream:
        raw = stream.read(MAX_DOCUMENT + 1).removeprefix(BOM)
    if len(raw) > MAX_DOCUMENT:
        raise too_large(held.place, f"{MAX_DOCUMENT >> 20} MiB", "more")
    try:
        return decoded(raw)
    except BadEncodingError as error:
        line = raw[: error.at].count(b"\n") + 1
        raise bad_document(f"{held.place}, line {line}", error) from None


def open_spooled(held: Spooled, name: str, wanted: Wanted) -> Pieces:
    """All of a stream as one document."""
    text = whole(held)
    raw = held.read(0, held.size)
    skip = len(raw) - len(raw.removeprefix(BOM))
    layout = Layout(name, lambda raw: Fields(decoded(raw)), "file")
    pieces = [Piece(1, skip, raw[skip:])] if text else []
    return Pieces(held, pieces, layout, wanted)

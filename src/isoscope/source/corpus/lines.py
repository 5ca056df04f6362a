"""Text, a document per line."""

from collections.abc import Iterator

from isoscope.errors import DocumentError
from isoscope.source.border import border
from isoscope.source.corpus.fault import (
    MAX_DOCUMENT,
    BadEncodingError,
    columns_given,
    too_large,
)
from isoscope.source.corpus.held import Held
from isoscope.source.corpus.pieces import Fields, Layout, Piece, Pieces
from isoscope.source.corpus.wanted import Wanted
from isoscope.source.lines import BOM
from isoscope.source.magic import described

HEAD = 4096


def open_lines(held: Held, name: str, wanted: Wanted) -> Pieces:
    """The lines of a text file; empty ones are dropped and counted."""
    for column in wanted.columns:
        raise columns_given(held.place, column)
    plain_text(held)
    layout = Layout(name, _parsed, "line", empty="empty lines")
    return Pieces(held, numbered(held), layout, wanted)


def numbered(held: Held) -> Iterator[Piece]:
    """All lines, with their numbers from 1 and without their ends."""
    number = start = 0
    with border(held.place), held.open() as stream:
        while raw := stream.readline(MAX_DOCUMENT + 1):
            number += 1
            if len(raw) > MAX_DOCUMENT:
                place = f"{held.place}, line {number}"
                raise too_large(place, f"{MAX_DOCUMENT >> 20} MiB", "more")
            skip = len(BOM) if number == 1 and raw.startswith(BOM) else 0
            yield Piece(number, start + skip, raw[skip:].rstrip(b"\r\n"))
            start += len(raw)


def plain_text(held: Held) -> None:
    """Refuse what is no text at all, before line 1 is blamed for it."""
    with border(held.place), held.open() as stream:
        head = stream.read(HEAD)
    if not is_text(head):
        raise DocumentError(
            f"expected text in {held.place}, got {described(head)}",
            hint="text is UTF-8; --kind tokens, audio or image reads something else",
            slug="corpus-kind",
        )


def is_text(head: bytes) -> bool:
    """Whether the first bytes could be UTF-8 text, or text in an encoding akin to it."""
    return b"\0" not in head and not head.startswith((b"\xff\xfe", b"\xfe\xff"))


def decoded(raw: bytes) -> str:
    """UTF-8 text, or a complaint that names the first byte that is none."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = f"the byte 0x{raw[error.start]:02x}"
        raise BadEncodingError(byte, error.start) from None


def _parsed(raw: bytes) -> Fields:
    return Fields(decoded(raw))

"""csv and tsv: a record a document, one cell of which is the text."""

from collections.abc import Callable, Iterator

from isoscope.errors import SourceError
from isoscope.source.cells import split
from isoscope.source.corpus.fault import (
    MAX_DOCUMENT,
    BadDocumentError,
    BadEncodingError,
    bad_document,
    no_column,
    nothing,
    too_large,
)
from isoscope.source.corpus.held import Held
from isoscope.source.corpus.lines import decoded, numbered, plain_text
from isoscope.source.corpus.pieces import Fields, Layout, Piece, Pieces
from isoscope.source.corpus.record import fields_of
from isoscope.source.corpus.wanted import Wanted
from isoscope.source.rowwise import BadLineError

Cells = Callable[[bytes], list[str]]
Cut = Callable[[Held], Iterator[Piece]]


def open_csv(held: Held, name: str, wanted: Wanted) -> Pieces:
    """The texts of a csv file: the first record names the columns.

    Where columns are named by their numbers, from 0, and not all of them are names of
    columns, the file has no such record.
    """
    return _opened(held, name, wanted, _quoted(_separator(held)), records)


def open_tsv(held: Held, name: str, wanted: Wanted) -> Pieces:
    """The texts of a tsv file, in which a line is a record whatever is quoted in it."""
    return _opened(held, name, wanted, _tabbed, _filled)


def heads(held: Held, *, tabbed: bool) -> list[str]:
    """The cells of the first record."""
    if tabbed:
        return _heads(held, _tabbed, _filled)
    return _heads(held, _quoted(_separator(held)), records)


def _heads(held: Held, cells: Cells, cut: Cut) -> list[str]:
    first = _first(held, cut(held))
    try:
        return [each.strip() for each in cells(first.raw)]
    except BadDocumentError as error:
        raise bad_document(f"{held.place}, line {first.number}", error) from None


def records(held: Held) -> Iterator[Piece]:
    """Records: lines, joined where a quoted cell goes on in the next one."""
    begun: Piece | None = None
    joined = 0
    for piece in numbered(held):
        odd = piece.raw.count(b'"') % 2 == 1
        if begun is None and not odd:
            if piece.raw and not piece.raw.isspace():
                yield piece
            continue
        begun = begun or piece
        joined += 1
        size = piece.start + len(piece.raw) - begun.start
        if size > MAX_DOCUMENT:
            raise too_large(f"{held.place}, line {begun.number}", "64 MiB", "more")
        if odd and joined > 1:
            # The bytes between, line ends included: random access will read those again.
            yield Piece(begun.number, begun.start, held.read(begun.start, size))
            begun, joined = None, 0
    if begun is not None:
        raise SourceError(
            f"expected a closing quotation mark in {held.place}, "
            f"got none after line {begun.number}",
            hint="write a quotation mark inside a quoted cell twice, or call it .tsv if it is",
            slug="csv-quote",
        )


def _opened(held: Held, name: str, wanted: Wanted, cells: Cells, cut: Cut) -> Pieces:
    first = _heads(held, cells, cut)
    asked = [column for column in wanted.roles if column is not None]
    # A first record of data may hold one of the numbers, as labels do, but hardly all of them.
    by_number = all(column.isdigit() for column in asked)
    headed = not by_number or all(column in first for column in asked)
    names = first if headed else [str(i) for i in range(len(first))]
    at: list[int | None] = []
    for column in wanted.roles:
        if column is not None and column not in names:
            raise no_column(column, names, held.place)
        at.append(None if column is None else names.index(column))

    def parse(raw: bytes) -> Fields:
        found = cells(raw)
        values: list[str | None] = [None] * len(at)
        for i, column in enumerate(at):
            if column is not None:
                if column >= len(found):
                    raise BadDocumentError(f"a record of {len(found)} cells")
                values[i] = found[column]
        return fields_of(*values, named=wanted.id is not None)

    pieces = cut(held)
    if headed:
        next(pieces)
    return Pieces(held, pieces, Layout(name, parse, wanted.stamp), wanted)


def _separator(held: Held) -> str:
    first = _first(held, records(held)).raw
    return max([",", ";", "\t"], key=lambda each: first.count(each.encode()))


def _first(held: Held, pieces: Iterator[Piece]) -> Piece:
    """The first record, which is needed even if bad ones may be left out."""
    plain_text(held)
    piece = next(pieces, None)
    if piece is None:
        raise nothing(held.place)
    try:
        decoded(piece.raw)
    except BadEncodingError as error:
        raise bad_document(f"{held.place}, line {piece.number}", error) from None
    return piece


def _filled(held: Held) -> Iterator[Piece]:
    return (piece for piece in numbered(held) if piece.raw and not piece.raw.isspace())


def _quoted(separator: str) -> Cells:
    def cells(raw: bytes) -> list[str]:
        decoded(raw)  # says which byte is wrong; split does not
        try:
            return split(raw, separator)
        except BadLineError as error:
            raise BadDocumentError(str(error)) from None

    return cells


def _tabbed(raw: bytes) -> list[str]:
    return [_bare(cell) for cell in decoded(raw).split("\t")]


def _bare(cell: str) -> str:
    """A cell without its quotes, if they are quotes and not part of what is quoted."""
    inner = cell[1:-1]
    if len(cell) < 2 or cell[0] != '"' or cell[-1] != '"' or '"' in inner.replace('""', ""):
        return cell
    return inner.replace('""', '"')

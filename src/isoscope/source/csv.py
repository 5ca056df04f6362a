"""csv: numbers in columns, or a list in one cell; with a header or without."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import BinaryIO

from isoscope.source.cells import Sheet, bare, number, numbers, sheet, split
from isoscope.source.feed import Feed
from isoscope.source.labels import ROLES
from isoscope.source.lines import Line, batched, lines, records
from isoscope.source.rowwise import BadLineError, Row, Rowwise
from isoscope.source.shape import DECODED_BYTES, rows_per_chunk
from isoscope.source.source import Source, Tally, Wanted
from isoscope.types import Chunk

SAMPLE = 64  # records from which the layout is found out


def open_csv(feed: Feed, wanted: Wanted, separator: str | None = None) -> Source:
    """The rows of a csv file or stream; the separator is found out unless it is given."""
    place = feed.place
    with feed.open(True) as stream:
        first = next(batched(islice(_records(stream, place), SAMPLE), SAMPLE, 4e6), [])
    plan = sheet(first, separator, wanted, place)
    parse = _parser(plan)
    most = rows_per_chunk(plan.width, "float64", DECODED_BYTES)
    roles = tuple(role for role in ROLES if role in plan.labels)
    rowwise = Rowwise(feed.name, place, plan.width, roles, wanted.skip_bad)

    def read(limit: int, tally: Tally) -> Iterator[Chunk]:
        start = 0
        with feed.open(False) as stream:
            body = islice(_records(stream, place), int(plan.headed), None)
            for batch in batched(body, min(limit, most)):
                yield rowwise.chunk(batch, start, parse, tally)
                start += len(batch)

    return Source(
        feed.name, plan.width, None, feed.rereadable, "float64", place, read,
        lambda: feed.stamp(",".join(map(str, plan.vector))), has_documents="document" in roles,
        drops=wanted.skip_bad,
    )  # fmt: skip


def _records(stream: BinaryIO, place: str) -> Iterator[Line]:
    return records(lines(stream, place), place)


def _parser(plan: Sheet) -> Callable[[bytes], Row]:
    """A function from a record to its row.

    Numbers with commas between them are JSON but for the brackets, and the JSON decoder
    is five times as fast as numpy.loadtxt. What it does not take is read cell by cell,
    to accept "+.5" and "nan" and to name what is wrong.
    """
    import msgspec

    decode = msgspec.json.Decoder(list[float]).decode
    plain = plan.separator == "," and plan.vector == tuple(range(len(plan.names)))

    def parse(record: bytes) -> Row:
        if plain and not plan.listed and (quick := fast(record)) is not None:
            return Row(quick)
        cells = split(record, plan.separator)
        if len(cells) != len(plan.names):
            raise BadLineError(f"{len(cells)} cells instead of {len(plan.names)}")
        chosen = [cells[i] for i in plan.vector]
        labels = {role: cells[i] for role, i in plan.labels.items()}
        vector = fast((bare(chosen[0]) if plan.listed else ",".join(chosen)).encode())
        if vector is None and plan.listed:
            vector = numbers(chosen[0])
        elif vector is None:
            vector = [_number(cells[i], plan.names[i]) for i in plan.vector]
        return Row(vector, document=labels.pop("document", "") or None, **labels)

    def fast(text: bytes) -> list[float] | None:
        try:
            found = decode(b"[%b]" % text)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None
        return found if len(found) == plan.width else None  # "0,5" is no pair of numbers

    return parse


def _number(cell: str, column: str) -> float:
    value = number(cell)
    if value is None:
        raise BadLineError(f"{cell[:40]!r} in column {column!r}")
    return value

"""parquet: a row a document; its texts are copied out, since rows cannot be read singly."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from isoscope.errors import SourceError
from isoscope.source.border import border, shown
from isoscope.source.corpus.fault import no_column
from isoscope.source.corpus.held import OnDisk, Spooled
from isoscope.source.corpus.pieces import Fields, Layout, Piece, Pieces
from isoscope.source.corpus.record import fields_of
from isoscope.source.corpus.wanted import Wanted
from isoscope.source.magic import PARQUET, wrong_kind

KIND = "a parquet file"
ROWS = 256  # decoded at a time


def open_parquet(path: Path, name: str, wanted: Wanted) -> Pieces:
    """The texts of a parquet file."""
    import msgspec

    on_disk = OnDisk(path)
    place = on_disk.place
    with border(place), on_disk.open() as stream:
        head = stream.read(16)
    if not head.startswith(PARQUET):
        raise wrong_kind(place, KIND, head)
    decode = msgspec.msgpack.Decoder(list[Any]).decode

    def parse(raw: bytes) -> Fields:
        return fields_of(*decode(raw), named=wanted.id is not None)

    copy = Spooled(place)
    layout = Layout(name, parse, wanted.stamp, unit="row")
    return Pieces(copy, _rows(path, copy, wanted), layout, wanted)


def _rows(path: Path, copy: Spooled, wanted: Wanted) -> Iterator[Piece]:
    import msgspec
    import pyarrow.parquet as pq

    encode = msgspec.msgpack.Encoder().encode
    number = 0
    # Mapped and without pre_buffer, pages are decoded one by one where they lie.
    with border(copy.place, KIND), pq.ParquetFile(path, memory_map=True, pre_buffer=False) as f:
        chosen = _columns(f.schema_arrow, wanted, copy.place)
        columns = list(dict.fromkeys(each for each in chosen if each is not None))
        for batch in f.iter_batches(batch_size=ROWS, columns=columns, use_threads=False):
            values = [_values(batch, each) for each in chosen]
            for row in zip(*values, strict=True):
                raw = encode(row)
                yield Piece(number, copy.append(raw), raw)
                number += 1
    copy.finish()


def _columns(schema: Any, wanted: Wanted, place: str) -> list[str | None]:
    import pyarrow as pa

    chosen = list(wanted.roles)
    for role, column in zip(("text", "target", "id", "label"), chosen, strict=True):
        if column is not None and column not in schema.names:
            raise no_column(column, schema.names, place)
        kind = None if column is None else schema.field(column).type
        plain = kind.value_type if kind is not None and pa.types.is_dictionary(kind) else kind
        if plain is not None and not _is_usable(plain, role):
            raise SourceError(
                f"expected text in column {column!r} of {place}, got {kind}",
                hint=f"name another column: {', '.join(map(shown, schema.names[:12]))}",
                slug="column-kind",
            )
    return chosen


def _is_usable(kind: Any, role: str) -> bool:
    import pyarrow as pa

    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return True
    if role == "label" and pa.types.is_boolean(kind):
        return True
    return role != "text" and (pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _values(batch: Any, column: str | None) -> list[Any]:
    """The values of a column; text that is no UTF-8 becomes a fault of its row alone."""
    if column is None:
        return [None] * len(batch)
    array = batch.column(column)
    try:
        return array.to_pylist()
    except UnicodeDecodeError:
        return [_value(each) for each in array]


def _value(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return scalar.as_buffer().to_pybytes()

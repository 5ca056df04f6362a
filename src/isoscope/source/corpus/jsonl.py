"""jsonl: an object a line, one field of which is the text."""

import json
from typing import Any

from isoscope.source.corpus.fault import BadDocumentError, BadEncodingError, no_column
from isoscope.source.corpus.held import Held
from isoscope.source.corpus.lines import numbered, plain_text
from isoscope.source.corpus.pieces import Fields, Layout, Pieces
from isoscope.source.corpus.record import fields_of, worded
from isoscope.source.corpus.wanted import Wanted


def open_jsonl(held: Held, name: str, wanted: Wanted) -> Pieces:
    """The texts of a jsonl file."""
    plain_text(held)
    _check(held, wanted)

    def parse(raw: bytes) -> Fields:
        value = loaded(raw)
        if not isinstance(value, dict):
            raise BadDocumentError(worded(value))
        if wanted.text not in value:
            raise BadDocumentError(f"no field {wanted.text!r}")
        found: dict[str, Any] = value
        values = [found.get(each) if each else None for each in wanted.roles]
        return fields_of(*values, named=wanted.id is not None)

    pieces = (piece for piece in numbered(held) if piece.raw and not piece.raw.isspace())
    return Pieces(held, pieces, Layout(name, parse, wanted.stamp), wanted)


def loaded(raw: bytes) -> Any:
    """The value of a line."""
    import msgspec

    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass  # NaN is no JSON, but Python writes it and reads it
    try:
        return json.loads(raw)
    except UnicodeDecodeError:
        raise BadEncodingError("other bytes") from None
    except (ValueError, RecursionError):
        raise BadDocumentError("a line that is not JSON") from None


def _check(held: Held, wanted: Wanted) -> None:
    """Refuse columns that the first object does not have: a slip, rather than a gap."""
    for piece in numbered(held):
        try:
            value = loaded(piece.raw)
        except BadDocumentError:
            continue
        if isinstance(value, dict):
            names: dict[str, Any] = value
            for column in wanted.roles:
                if column is not None and column not in names:
                    raise no_column(column, names, held.place)
            return

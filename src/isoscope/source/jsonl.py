"""jsonl: the value of a line, and what it is in words."""

import json
from typing import TypeAlias

from isoscope.source.faults import BadEncodingError, BadRecordError

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"

_WORDS: dict[type[object], str] = {
    str: "a string",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}


def decode_json(raw: bytes) -> Json:
    """The value of a line; NaN and infinity are accepted, as Python writes them."""
    import msgspec

    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass  # NaN is not JSON, but Python writes it and reads it
    try:
        return json.loads(raw)
    except UnicodeDecodeError:
        raise BadEncodingError("other bytes") from None
    except (ValueError, RecursionError):
        raise BadRecordError("a line that is not JSON") from None


def describe_value(value: object) -> str:
    """What a value is, in words."""
    return "nothing (null)" if value is None else _WORDS.get(type(value), "a number")

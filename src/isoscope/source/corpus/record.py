"""The values of a record that make a document: text, target and id."""

from typing import Any

from isoscope.source.corpus.fault import BadDocumentError, BadEncodingError
from isoscope.source.corpus.pieces import Fields

_WORDS = {str: "a string", bool: "true or false", list: "a list", dict: "an object"}


def fields_of(text: Any, target: Any, id: Any, *, named: bool) -> Fields:
    """The fields of a record; `named` if its id has to be there."""
    for value in (text, target, id):
        if isinstance(value, bytes):  # a column of text that is none
            raise BadEncodingError("other bytes")
    if not isinstance(text, str):
        raise BadDocumentError(worded(text))
    return Fields(unicode(text), _target(target), _id(id) if named else None)


def worded(value: Any) -> str:
    """What a value is, in words."""
    return "nothing (null)" if value is None else _WORDS.get(type(value), "a number")


def unicode(text: str) -> str:
    """Text that can be written as UTF-8: JSON and Python allow half a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadEncodingError("half of a surrogate pair") from None
    return text


def _target(value: Any) -> str | None:
    if value is None or value == "":
        return None
    if isinstance(value, bool | list | dict):
        raise BadDocumentError(f"{worded(value)} as target")
    return unicode(str(value))


def _id(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise BadDocumentError(f"{'an empty string' if value == '' else worded(value)} as id")
    return unicode(str(value))

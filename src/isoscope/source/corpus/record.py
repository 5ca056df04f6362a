"""The values of a record that make a document: text, target, id and label."""

from typing import Any

from isoscope.source.corpus.fault import BadDocumentError, BadEncodingError
from isoscope.source.corpus.pieces import Fields

_WORDS = {str: "a string", bool: "true or false", list: "a list", dict: "an object"}


def fields_of(text: Any, target: Any, id: Any, label: Any = None, *, named: bool) -> Fields:
    """The fields of a record; `named` if its id has to be there."""
    for value in (text, target, id, label):
        if isinstance(value, bytes):  # a column of text that is none
            raise BadEncodingError("other bytes")
    if not isinstance(text, str):
        raise BadDocumentError(worded(text))
    name = _id(id) if named else None
    return Fields(unicode(text), _target(target), name, _label(label))


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


def _label(value: Any) -> str | None:
    """Return a label as text; None where there is none, which is for the caller to judge."""
    if value is None or value == "" or value != value:  # NaN: how frames write a gap
        return None
    if isinstance(value, list | dict):
        raise BadDocumentError(f"{worded(value)} as label")
    if isinstance(value, bool):
        return "true" if value else "false"
    return unicode(str(value))


def _id(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise BadDocumentError(f"{'an empty string' if value == '' else worded(value)} as id")
    return unicode(str(value))

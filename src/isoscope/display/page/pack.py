"""Values packed into a page: columns, few digits, deflated, in letters that no page obeys."""

import base64
import json
import math
import zlib
from collections.abc import Iterable
from typing import Any

DIGITS = 8  # significant digits of numbers on a page


def packed(value: Any) -> str:
    """Return a value as deflated JSON in base64: nothing in it can end a script element."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return deflated(text)


def deflated(text: str) -> str:
    """Return text as base64 of its zlib stream, which browsers inflate by themselves."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii")


def unpacked(text: str) -> Any:
    """Return what was packed."""
    return json.loads(zlib.decompress(base64.b64decode(text)))


def for_script(value: Any) -> str:
    r"""Return JSON to stand in a script element, whatever strings it holds.

    >>> for_script("</script>&\u2028")
    '"\\u003c/script\\u003e\\u0026\\u2028"'
    """
    text = json.dumps(value, allow_nan=False)
    for mark in "<>&":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def column(cells: Iterable[Any]) -> dict[str, Any]:
    """Return cells with words written once and numbers with a few digits."""
    cells = list(cells)
    if any(isinstance(cell, str | tuple) for cell in cells):
        words = list(dict.fromkeys(cells))
        number = {word: place for place, word in enumerate(words)}
        return {"words": words, "at": [number[cell] for cell in cells]}
    return {"is": [short(cell) for cell in cells]}


def short(number: float | int | None) -> float | int | None:
    """Return a number with a few digits; None for what is no number."""
    if number is None or isinstance(number, int):
        return number
    value = float(number)
    if not math.isfinite(value):
        return None
    value = float(f"{value:.{DIGITS}g}")
    return int(value) if value.is_integer() and abs(value) < 2**53 else value

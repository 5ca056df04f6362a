"""What a page embeds: packed values, the Vega runtime, its own script and style sheet.

Nothing is fetched: a content security policy allows these scripts and no request.
"""

import base64
import hashlib
import json
import math
import zlib
from collections.abc import Iterable
from functools import lru_cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

from isoscope.display.frames import Value
from isoscope.errors import ConfigError

RUNTIME = "vega.js.z"
VEGA_LITE = "6.4"  # edition of Vega-Lite; that of the Altair release we build with
DIGITS = 8  # significant digits of numbers on a page
Packable: TypeAlias = str | int | float | tuple[str, ...] | None


# --- values -------------------------------------------------------------------------------
def pack(value: Value) -> str:
    """Return a value as deflated JSON in base64: nothing in it can end a script element."""
    return deflate(json.dumps(value, allow_nan=False, separators=(",", ":")))


def deflate(text: str) -> str:
    """Return text as base64 of its zlib stream, which browsers inflate by themselves."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii")


def pack_column(cells: Iterable[Packable]) -> dict[str, Value]:
    """Return cells with each word stored once and numbers rounded to a few digits."""
    cells = list(cells)
    if any(isinstance(cell, str | tuple) for cell in cells):
        words = list(dict.fromkeys(cells))
        number = {word: place for place, word in enumerate(words)}
        return {"words": words, "at": [number[cell] for cell in cells]}
    return {"is": [_round(cell) for cell in cells if not isinstance(cell, str | tuple)]}


def _round(number: float | None) -> float | None:
    """Return a number with a few digits; None for NaN and infinity."""
    if number is None or isinstance(number, int):
        return number
    value = float(number)
    if not math.isfinite(value):
        return None
    value = float(f"{value:.{DIGITS}g}")
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


# --- scripts ------------------------------------------------------------------------------
def require_package(name: str) -> ModuleType:
    """Import a package that draws, or raise an error that says how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigError(
            f"cannot draw without the package {name.replace('_', '-')}",
            hint="pip install 'isoscope[report]'",
            slug="report-package",
        ) from error


@lru_cache(maxsize=1)
def vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script that never evaluates strings.

    Vega-Embed contains an interpreter of Vega's expressions, so that the page can forbid
    eval. The script is stored deflated beside this file: building it takes many seconds.
    """
    packed = files("isoscope.display.page").joinpath(RUNTIME).read_bytes()
    return zlib.decompress(packed).decode("utf-8")


def build_runtime() -> bytes:
    """Build the stored runtime with the pinned converter; `make vega` writes it."""
    script = require_package("vl_convert").javascript_bundle(None, VEGA_LITE)
    return zlib.compress(f"(()=>{{{script}}})();".encode(), 9)


@lru_cache(maxsize=8)
def asset(name: str) -> str:
    """Return the text of a file beside this one."""
    return files("isoscope.display.page").joinpath(name).read_text(encoding="utf-8")


def script_hash(script: str) -> str:
    """Return the name of a script in a content security policy."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def security_policy(*scripts: str) -> str:
    """Return a policy that runs these scripts and forbids every request."""
    allowed = " ".join(map(script_hash, scripts))
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


if __name__ == "__main__":
    Path(__file__).with_name(RUNTIME).write_bytes(build_runtime())

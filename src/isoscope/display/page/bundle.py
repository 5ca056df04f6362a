"""The Vega runtime and our own script, ready to stand in a page without any network."""

import base64
import hashlib
import zlib
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from isoscope.errors import ConfigError

BUNDLE = "vega.js.z"
GRAMMAR = "6.4"  # edition of Vega-Lite; that of the Altair release we build with


def needed(name: str) -> Any:
    """Return a package that draws, or say how it is installed."""
    from importlib import import_module

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
    """Return Vega, Vega-Lite and Vega-Embed as one script; strings are never run as code.

    Vega-Embed brings an interpreter of Vega's expressions, so that the page can forbid eval.
    The script comes with this folder, deflated: bundling it anew would take many seconds.
    """
    packed = files("isoscope.display.page").joinpath(BUNDLE).read_bytes()
    return zlib.decompress(packed).decode("utf-8")


def bundled() -> bytes:
    """Return the runtime made anew, as it comes with this folder; `make vega` writes it."""
    bundle = needed("vl_convert").javascript_bundle(None, GRAMMAR)
    return zlib.compress(f"(()=>{{{bundle}}})();".encode(), 9)


@lru_cache(maxsize=8)
def asset(name: str) -> str:
    """Return the text of a file that comes with this folder."""
    return files("isoscope.display.page").joinpath(name).read_text(encoding="utf-8")


def fingerprint(script: str) -> str:
    """Return how a content security policy names a script that may run."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def policy(*scripts: str) -> str:
    """Return a policy that lets these scripts run, and nothing be fetched or sent."""
    allowed = " ".join(map(fingerprint, scripts))
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


if __name__ == "__main__":
    Path(__file__).with_name(BUNDLE).write_bytes(bundled())

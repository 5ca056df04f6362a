"""Packages that only some corpora need."""

from importlib import import_module
from typing import Any

from isoscope.errors import SourceError


def needed(package: str, extra: str, what: str) -> Any:
    """Import a package of an extra, or say how to install it."""
    try:
        return import_module(package)
    except (ImportError, OSError) as error:  # OSError: the C library behind it is missing
        raise SourceError(
            f"cannot read {what} without {package}",
            hint=f"pip install 'isoscope[{extra}]'",
            slug="package-missing",
        ) from error

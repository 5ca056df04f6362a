"""Where a long run is written, and where its units are kept until it is whole."""

import os
from pathlib import Path

from isoscope.errors import ConfigError
from isoscope.store.folder import unfinished


def target_of(output: str | os.PathLike[str] | None, overwrite: bool) -> Path | None:
    """Return the folder a run will be written to, one that was begun included."""
    from isoscope.store import check_target

    return None if output is None else check_target(output, overwrite, resume=True)


def working(target: Path | None) -> Path | None:
    """Return where units are kept: in the folder itself, unless a run is to be replaced."""
    if target is None or not target.exists() or unfinished(target):
        return target
    return aside(target)


def aside(target: Path) -> Path:
    """Return the folder beside a run that is to be replaced."""
    return target.parent / f".isoscope-{target.name[:40]}-survey"


def positive(name: str, value: int | None, least: int = 1) -> None:
    """Refuse what is no whole number, or too small a one."""
    if value is not None and (type(value) is not int or value < least):
        raise ConfigError(
            f"expected at least {least} as {name}, got {value!r}",
            hint=f"give a whole number to --{name}",
            slug="number-too-small",
        )


def within(name: str, value: float, least: float, most: float) -> None:
    """Refuse a number that is out of its range, or no number."""
    if not least <= value <= most:
        to = "" if most == float("inf") else f" and at most {most:g}"
        raise ConfigError(
            f"expected at least {least:g}{to} as {name}, got {value!r}",
            hint=f"give a number in that range to --{name}",
            slug="number-range",
        )

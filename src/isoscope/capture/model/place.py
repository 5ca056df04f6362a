"""Where a model is: a folder, a GGUF file, or a name of the hub with its revision."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from isoscope.capture.model.hub import downloaded
from isoscope.errors import IsoscopeError


@dataclass(frozen=True, slots=True)
class Place:
    """The folder of a model on this machine."""

    name: str  # as shown
    folder: Path
    gguf: str | None = None  # the file in the folder
    commit: str | None = None  # of the hub


def place_of(
    where: str | os.PathLike[str],
    *,
    revision: str | None,
    code: bool,
    weights: bool,
    say: Callable[[str], None],
) -> Place:
    """Return where a model is; what exists as a path is a path, else a name may be one."""
    text = os.fspath(where)
    path = Path(text).expanduser()
    if path.exists():
        return _local(path, revision)
    if not isinstance(where, str) or looks_like_path(text):
        raise IsoscopeError(
            f"no such folder: {text}",
            hint="check the spelling; a relative path starts in the folder you are in",
            slug="model-not-found",
        )
    name, _, after = text.partition("@")
    if after and revision and after != revision:
        raise IsoscopeError(
            f"expected one revision of {name}, got {after!r} and {revision!r}",
            hint="give it once, after the name",
            slug="hub-revision",
        )
    asked = after or revision
    folder, commit = downloaded(name, asked, code=code, weights=weights, say=say)
    return Place(f"{name}@{asked}" if asked else name, folder, commit=commit)


def looks_like_path(text: str) -> bool:
    """Whether a text is meant as a path: names of the hub have one slash at most."""
    return text.startswith((".", "/", "~")) or text.count("/") > 1 or text.endswith(".gguf")


def _local(path: Path, revision: str | None) -> Place:
    if revision:
        raise IsoscopeError(
            f"cannot take revision {revision!r} with the path {path}",
            hint="a folder has one revision; leave it out, or name the model as on the hub",
            slug="hub-revision",
        )
    if path.is_dir():
        return Place(path.resolve().name, path)
    if path.suffix.lower() == ".gguf":
        return Place(path.stem, path.parent, gguf=path.name)
    raise IsoscopeError(
        f"expected a folder or a GGUF file, got the file {path}",
        hint="name the folder that has config.json and the weights",
        slug="model-not-found",
    )

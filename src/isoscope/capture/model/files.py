"""Small files of a model folder, read with care: bounded JSON, names that stay inside."""

import json
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

from isoscope.errors import IsoscopeError

LARGEST_JSON = 64 * 2**20  # an index of a very large model has a few MB
PAGE = 2**20


def read_json(path: Path) -> Any:
    """Return the content of a JSON file; it is not read when it is absurdly large."""
    try:
        size = path.stat().st_size
        if size > LARGEST_JSON:
            raise unreadable(path, f"{size} bytes of JSON")
        return json.loads(path.read_bytes())
    except OSError as error:
        raise unreadable(path, error.strerror or "no content") from error
    except (ValueError, RecursionError) as error:
        raise unreadable(path, f"broken JSON ({error})") from error


def read_object(path: Path) -> dict[str, Any]:
    """Return the content of a JSON file that has to be an object."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise unreadable(path, f"JSON of kind {type(content).__name__} where an object belongs")
    return content


def inside(folder: Path, name: Any, asked_by: Path) -> Path:
    """Return the path of a file that another file names; it may not lead out of the folder.

    The check is of the name alone: the hub's cache is made of links to files elsewhere.
    """
    parts = PurePosixPath(name).parts if isinstance(name, str) else ("..",)
    text = str(name)
    if ".." in parts or PurePosixPath(text).is_absolute() or set("\\:\0") & set(text):
        raise IsoscopeError(
            f"expected names of files in the folder of {asked_by}, got {name!r}",
            hint="the file tries to reach outside its folder; get the model from its maker",
            slug="model-unreadable",
        )
    return folder / text


def sha_of_files(paths: list[Path]) -> str:
    """Return the SHA-256 of the content of files, one after the other in order of name."""
    digest = sha256()
    for path in sorted(paths, key=lambda p: p.as_posix()):
        try:
            with path.open("rb") as file:
                while page := file.read(PAGE):
                    digest.update(page)
        except OSError as error:
            raise unreadable(path, error.strerror or "no content") from error
    return digest.hexdigest()


def unreadable(path: Path | str, got: str) -> IsoscopeError:
    """Return the error for a file of a model that cannot be read as what it should be."""
    return IsoscopeError(
        f"expected a readable part of a model at {path}, got {got}",
        hint="copy or download the model again, and look whether its files are whole",
        slug="model-unreadable",
    )

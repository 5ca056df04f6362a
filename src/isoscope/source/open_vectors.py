"""What a path, a dash, an array, a tensor or a data frame becomes: a source of rows."""

import os
from pathlib import Path
from typing import Any

from isoscope.errors import SourceError
from isoscope.source.beside import beside
from isoscope.source.border import border
from isoscope.source.file import open_file
from isoscope.source.folder import open_folder
from isoscope.source.frame import is_frame, open_frame
from isoscope.source.labels import Role
from isoscope.source.memory import open_memory
from isoscope.source.source import Source, Wanted
from isoscope.source.stdin import open_stdin, open_stream


def open_source(
    vectors: Any,
    *,
    column: str | None = None,
    document: Any = None,
    id: Any = None,
    text: Any = None,
    name: str | None = None,
    skip_bad: bool = False,
    key: str | None = None,
) -> Source:
    """Open vectors for reading: nothing but headers and first rows is read here.

    `column`, or `key`, picks the column of a table or the array of an npz or safetensors
    file. `document`, `id` and `text` name columns or arrays that are carried along; a path
    ending in .npy, or a sequence with one entry a row, gives them apart from the vectors.
    With `skip_bad`, rows that are no vectors are dropped and counted.
    """
    names: dict[Role, str] = {}
    given: dict[Role, Any] = {}
    for role, value in {"document": document, "id": id, "text": text}.items():
        _sort_out(role, value, names, given)
    wanted = Wanted(column=_either(column, key), skip_bad=skip_bad, **names)
    apart = frozenset(each.resolve() for each in given.values() if isinstance(each, Path))
    return beside(_opened(vectors, wanted, name, apart), given)


def _opened(vectors: Any, wanted: Wanted, name: str | None, apart: frozenset[Path]) -> Source:
    if isinstance(vectors, str | os.PathLike):
        return _open_path(Path(vectors).expanduser(), wanted, name, apart)
    if hasattr(vectors, "read"):
        return open_stream(vectors, wanted, name or "stream", "the stream")
    if is_frame(vectors):
        return open_frame(vectors, wanted, name or "rows")
    return open_memory(vectors, wanted, name or "rows")


def _open_path(path: Path, wanted: Wanted, name: str | None, apart: frozenset[Path]) -> Source:
    if str(path) in ("-", "/dev/stdin"):
        return open_stdin(wanted, name)
    with border(str(path)):
        if "\0" in str(path):
            raise FileNotFoundError  # Python itself raises ValueError here
        path.stat()
    if path.is_dir():
        return open_folder(path, wanted, name, apart)
    if not path.is_file():  # a named pipe, as <(command) makes them
        with border(str(path)):
            stream = path.open("rb")
        return open_stream(stream, wanted, name or path.name, str(path))
    return open_file(path, wanted, name)


def _sort_out(role: Any, value: Any, names: dict[Role, str], given: dict[Role, Any]) -> None:
    """File labels as the name of a column, or as something given apart."""
    if value is None:
        return
    if isinstance(value, os.PathLike):
        given[role] = Path(value)
    elif isinstance(value, str):
        if value.endswith(".npy"):
            given[role] = Path(value).expanduser()
        else:
            names[role] = value
    else:
        given[role] = value


def _either(column: str | None, key: str | None) -> str | None:
    if column is not None and key is not None and column != key:
        raise SourceError(
            f"cannot read column {column!r} with key {key!r}",
            hint="both mean the same: give one",
            slug="column-and-key",
        )
    return column if column is not None else key

"""Where a path leads: standard input, a named pipe, a folder and its files, or a file."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TypeVar

from isoscope.errors import SourceError
from isoscope.source.file_errors import border

RUN = "run.json"  # the file that makes a folder a run
STDIN = "standard input"
T = TypeVar("T")


def open_path(
    path: Path,
    expected: str,
    hint: str,
    *,
    stream: Callable[[BinaryIO, str, str], T],  # with a name for ids and a place for messages
    folder: Callable[[Path], T],
    file: Callable[[Path], T],
) -> T:
    """Open what a path leads to: standard input, a named pipe, a folder or a file."""
    if str(path) in ("-", "/dev/stdin"):
        if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
            raise SourceError(
                f"expected {expected} on {STDIN}, got a terminal",
                hint=hint,
                slug="stdin-terminal",
            )
        return stream(sys.stdin.buffer, "stdin", STDIN)
    with border(str(path)):
        if "\0" in str(path):
            raise FileNotFoundError  # Python itself raises ValueError here
        path.stat()
        # <(command) makes named pipes.
        pipe = None if path.is_dir() or path.is_file() else path.open("rb")
    if pipe is not None:
        return stream(pipe, path.name, str(path))
    return folder(path) if path.is_dir() else file(path)


def list_files(
    folder: Path, expected: str, accept: Callable[[str], bool] = lambda _name: True
) -> list[Path]:
    """Files below a folder in the order of their paths.

    Hidden files, runs and links to files elsewhere are skipped.
    """
    if (folder / RUN).exists():
        raise SourceError(
            f"expected {expected}, got the run {folder}",
            hint=f"this is a run folder: use isoscope read {folder}",
            slug="run-folder",
        )
    found: list[Path] = []
    inside = folder.resolve()
    with border(str(folder)):
        os.scandir(folder).close()  # os.walk does not report a folder it may not read
        for root, folders, names in os.walk(folder):
            if RUN in names:
                folders.clear()
                continue
            folders[:] = [each for each in folders if not each.startswith(".")]
            paths = (
                Path(root) / each for each in names if not each.startswith(".") and accept(each)
            )
            found += [
                each
                for each in paths
                if each.is_file() and each.resolve().is_relative_to(inside)
            ]
    return sorted(found, key=lambda path: path.relative_to(folder).parts)

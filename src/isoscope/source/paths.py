"""Where a path leads: standard input, a folder, a named pipe or a file; files of a folder."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Literal

from isoscope.errors import SourceError
from isoscope.source.border import border

RUN = "run.json"  # the file that makes a folder a run
STDIN = "standard input"
Place = Literal["stdin", "folder", "pipe", "file"]


def classify_path(path: Path) -> Place:
    """What a path leads to; one that leads nowhere is an error."""
    if str(path) in ("-", "/dev/stdin"):
        return "stdin"
    with border(str(path)):
        if "\0" in str(path):
            raise FileNotFoundError  # Python itself raises ValueError here
        path.stat()
    if path.is_dir():
        return "folder"
    return "file" if path.is_file() else "pipe"  # <(command) makes named pipes


def standard_input(expected: str, hint: str) -> BinaryIO:
    """Standard input, unless it is a terminal."""
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        raise SourceError(
            f"expected {expected} on {STDIN}, got a terminal", hint=hint, slug="stdin-terminal"
        )
    return sys.stdin.buffer


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
            for each in names:
                path = Path(root) / each
                if each.startswith(".") or not accept(each) or not path.is_file():
                    continue
                if path.resolve().is_relative_to(inside):
                    found.append(path)
    return sorted(found, key=lambda path: path.relative_to(folder).parts)

"""Writing the files of a run: whole or not at all, and faults of the disk as our errors."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from isoscope.errors import StoreError


@contextmanager
def writing(folder: Path) -> Generator[None]:
    """Turn faults of the disk into a StoreError that names the folder."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"cannot write a run to {str(folder)!r}: {error.strerror or error}",
            hint="free some space or choose another folder; what was kept is still there",
            slug="store-write",
        ) from error


def write_whole(path: Path, content: bytes) -> None:
    """Put a file in its place once its bytes are on the disk; a kill leaves a .part file."""
    aside = path.with_name(f"{os.getpid()}-{path.name}.part")
    with aside.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)

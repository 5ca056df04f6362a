"""Fingerprints: content is recognised without reading all of it again."""

import os
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

from isoscope.source.border import border

PAGE = 4096
PAGES = 64  # evenly spaced, besides the first and the last


def of_file(path: Path, column: str = "") -> str:
    """Fingerprint of a file: its size, first and last page, and pages in between.

    The column that is read is part of it: two arrays of one npz are two collections.
    """
    digest = _new_digest(column)
    with border(str(path)), path.open("rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        digest.update(f"{size}\0".encode())
        for offset in spread(size, PAGE):
            file.seek(offset)
            digest.update(file.read(PAGE))
    return digest.hexdigest()


def of_parts(parts: Iterable[str | bytes], column: str = "") -> str:
    """Fingerprint of a few pieces: those of a folder's files, or a sample of an array."""
    digest = _new_digest(column)
    for part in parts:
        piece = part.encode() if isinstance(part, str) else part
        digest.update(len(piece).to_bytes(8, "little"))
        digest.update(piece)
    return digest.hexdigest()


def spread(size: int, step: int) -> list[int]:
    """Offsets of pieces of length `step`: all of them if few, else spread evenly."""
    if size <= (PAGES + 2) * step:
        return list(range(0, size, step))
    last = size - step
    return [last * k // (PAGES + 1) for k in range(PAGES + 2)]


def _new_digest(column: str) -> "blake2b":
    return blake2b(f"{column}\0".encode("utf-8", "surrogatepass"), digest_size=16)

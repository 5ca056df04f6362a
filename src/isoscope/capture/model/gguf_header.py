"""The metadata of a GGUF file: its single values, without weights and tables of tokens."""

import mmap
import struct
from pathlib import Path

Scalar = int | float | bool | str
MAGIC = b"GGUF"
STRING, ARRAY = 8, 9
DEEPEST = 8  # arrays within arrays
# Formats of struct by the number of a type.
FIXED = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i",
    6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d",
}  # fmt: skip


def read_scalars(path: Path) -> dict[str, Scalar]:
    """Return the metadata of a GGUF file except its arrays; ValueError if it is none.

    The reader of the gguf package makes an object of every token, which takes seconds.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as raw:
        try:
            return _scalars(raw)
        except (struct.error, KeyError, UnicodeDecodeError, OverflowError) as error:
            raise ValueError(f"broken metadata ({error!r})") from error


def _scalars(raw: mmap.mmap) -> dict[str, Scalar]:
    version, _tensors, count = struct.unpack_from("<IQQ", raw, 4)
    if raw[:4] != MAGIC or version not in (2, 3):
        raise ValueError("no GGUF file of version 2 or 3")
    found: dict[str, Scalar] = {}
    at = 24
    for _ in range(count):
        key, at = _text(raw, at)
        (kind,) = struct.unpack_from("<I", raw, at)
        at += 4
        if kind == ARRAY:
            at = _after_array(raw, at)
        elif kind == STRING:
            found[key], at = _text(raw, at)
        else:
            (found[key],) = struct.unpack_from(FIXED[kind], raw, at)
            at += struct.calcsize(FIXED[kind])
    return found


def _text(raw: mmap.mmap, at: int) -> tuple[str, int]:
    (size,) = struct.unpack_from("<Q", raw, at)
    end = at + 8 + size
    return raw[at + 8 : end].decode(), end


def _after_array(raw: mmap.mmap, at: int, depth: int = 0) -> int:
    kind, count = struct.unpack_from("<IQ", raw, at)
    at += 12
    # The least that so many entries take: a reader that believed a number beyond the end of
    # the file would count to it.
    least = struct.calcsize(FIXED[kind]) if kind in FIXED else 8
    if at + count * least > len(raw) or depth > DEEPEST:
        raise ValueError(f"an array of {count} values, of which there is no room")
    if kind in FIXED:
        return at + count * least
    if kind not in (STRING, ARRAY):
        raise KeyError(kind)
    for _ in range(count):
        if kind == STRING:
            at += 8 + struct.unpack_from("<Q", raw, at)[0]
        else:
            at = _after_array(raw, at, depth + 1)
    return at

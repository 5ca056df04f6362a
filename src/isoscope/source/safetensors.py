"""safetensors: named tensors behind a JSON header, which is checked before it is believed."""

from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any, cast

import numpy as np

from isoscope.source.border import border, damaged, shown, truncated
from isoscope.source.feed import Feed
from isoscope.source.header import Header
from isoscope.source.labels import Role, documents_alone, labelled
from isoscope.source.magic import wrong_kind
from isoscope.source.mapped import mapped, mapped_blocks
from isoscope.source.member import label_members, vectors_member
from isoscope.source.shape import plain
from isoscope.source.source import Seek, Source, Tally, Wanted
from isoscope.types import Array, Chunk

KIND = "a safetensors file"
MAX_HEADER = 32 << 20
TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "BOOL": "|b1",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1",
}  # fmt: skip


def open_safetensors(feed: Feed, wanted: Wanted) -> Source:
    """The rows of one tensor of a safetensors file."""
    path, place = cast(Path, feed.path), feed.place
    arrays, types = _arrays(path, place)
    name = vectors_member(arrays, wanted, place)
    header, brain = arrays[name], types[name] == "BF16"
    n, d = header.shape
    labels = label_members(arrays, wanted, n, place)

    def read(
        limit: int, _tally: Tally, start: int = 0, stop: int | None = None
    ) -> Iterator[Chunk]:
        beside: dict[Role, Array] = {
            role: mapped(path, arrays[member], place=place)[0]
            for role, member in labels.items()
        }
        blocks = mapped_blocks(path, header, limit, place=place, start=start, stop=stop)
        for at, block in blocks:
            rows = from_bfloat16(block) if brain else plain(block)
            end = at + len(rows)
            carried = {role: np.array(values[at:end]) for role, values in beside.items()}
            yield Chunk(rows, feed.name, at, place=place, **labelled(carried, place))

    def documents() -> Iterator[Chunk]:
        values = mapped(path, arrays[labels["document"]], place=place)[0]
        yield from documents_alone(values, feed.name, place)

    return Source(
        feed.name, d, n, feed.rereadable, "bfloat16" if brain else header.dtype.name, place,
        read, lambda: feed.stamp(name), has_documents="document" in labels,
        seek=Seek(range(n), read), documents=documents if "document" in labels else None,
    )  # fmt: skip


def from_bfloat16(bits: Array) -> Array:
    """Widen bfloat16, given as 16-bit integers: it is the upper half of a float32."""
    wide = bits.astype(np.uint32)
    wide <<= 16
    return wide.view(np.float32)


def _arrays(path: Path, place: str) -> tuple[dict[str, Header], dict[str, str]]:
    """Shape, type and place of each tensor, all of them within the file and apart."""
    with border(place), path.open("rb") as file:
        size = path.stat().st_size
        start = file.read(16)
        length = int.from_bytes(start[:8], "little")
        if len(start) < 8 or length > size - 8:
            raise truncated(place, 8 + length, size)
        if length > MAX_HEADER:
            raise damaged(place, KIND, f"a header of {length} bytes")
        file.seek(8)
        text = file.read(length)
    entries = _entries(text, place)
    arrays: dict[str, Header] = {}
    types: dict[str, str] = {}
    end = 8 + length
    for name, entry in sorted(entries.items(), key=lambda each: each[1].data_offsets):
        header = _checked(entry, 8 + length, f"{place}[{shown(name)}]")
        if header.offset != end:
            raise damaged(place, KIND, f"tensor {name!r} overlaps another or leaves a gap")
        end = header.size
        arrays[name], types[name] = header, entry.dtype
    if end != size:
        raise truncated(place, end, size)
    return arrays, types


def _entries(text: bytes, place: str) -> dict[str, Any]:
    import msgspec

    class Entry(msgspec.Struct):
        dtype: str
        shape: list[int]
        data_offsets: tuple[int, int]

    if text[:1] != b"{":
        raise wrong_kind(place, KIND, len(text).to_bytes(8, "little") + text[:8])
    try:
        raw = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        raw.pop("__metadata__", None)
        return {name: msgspec.json.decode(each, type=Entry) for name, each in raw.items()}
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise damaged(place, KIND, str(error)) from error


def _checked(entry: Any, base: int, where: str) -> Header:
    begin, end = entry.data_offsets
    if len(entry.shape) > 16 or min([begin, end, *entry.shape]) < 0 or end < begin:
        raise damaged(where, KIND, "negative or too many sizes")
    if entry.dtype not in TYPES:  # float8 and the like: not in anyone's way unless asked for
        return Header((end - begin,), np.dtype("V1"), fortran=False, offset=base + begin)
    dtype = np.dtype(TYPES[entry.dtype])
    if end - begin != prod(entry.shape) * dtype.itemsize:
        raise damaged(where, KIND, f"{end - begin} bytes for shape {tuple(entry.shape)}")
    return Header(tuple(entry.shape), dtype, fortran=False, offset=base + begin)

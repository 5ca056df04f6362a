"""safetensors: named tensors behind a JSON header, which is checked before it is trusted."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import cast

import numpy as np

from isoscope.source.border import border, damaged, printable, truncated, wrong_kind
from isoscope.source.bytes import ByteSource
from isoscope.source.columns import label_arrays, vectors_array
from isoscope.source.npy import ArrayHeader, map_array, map_blocks
from isoscope.source.row_labels import add_labels, document_chunks
from isoscope.source.row_source import PassCounts, RowSource, VectorRequest
from isoscope.source.shape import plain_rows
from isoscope.types import Array, Chunk

KIND = "a safetensors file"
MAX_HEADER = 32 << 20
TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "BOOL": "|b1",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
}


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """What the header says about one tensor."""

    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


def open_safetensors(data: ByteSource, request: VectorRequest) -> RowSource:
    """The rows of one tensor of a safetensors file."""
    path, place = cast(Path, data.path), data.place
    arrays, types = _read_arrays(path, place)
    name = vectors_array(arrays, request, place)
    header, brain = arrays[name], types[name] == "BF16"
    n, d = header.shape
    labels = label_arrays(arrays, request, n, place)

    def read(limit: int, _counts: PassCounts, start: int, stop: int | None) -> Iterator[Chunk]:
        columns = {
            role: map_array(path, arrays[each], place=place)[0] for role, each in labels.items()
        }
        blocks = map_blocks(path, header, limit, place=place, start=start, stop=stop)
        for at, block in blocks:
            rows = from_bfloat16(block) if brain else plain_rows(block)
            end = at + len(rows)
            some = {role: np.array(values[at:end]) for role, values in columns.items()}
            yield add_labels(Chunk(rows, data.name, at, place=place), some)

    def documents() -> Iterator[Chunk]:
        values = map_array(path, arrays[labels["document"]], place=place)[0]
        yield from document_chunks(values, data.name, place)

    return RowSource(
        name=data.name,
        width=d,
        rows=n,
        rereadable=data.rereadable,
        dtype="bfloat16" if brain else header.dtype.name,
        place=place,
        read=read,
        stamp=lambda: data.stamp(name),
        has_documents="document" in labels,
        starts=range(n),
        documents=documents if "document" in labels else None,
    )


def from_bfloat16(bits: Array) -> Array:
    """Widen bfloat16, stored as 16-bit integers: it is the upper half of a float32."""
    wide = bits.astype(np.uint32)
    wide <<= 16
    return wide.view(np.float32)


def _read_arrays(path: Path, place: str) -> tuple[dict[str, ArrayHeader], dict[str, str]]:
    """Shape, type and offset of each tensor, within the file and without overlaps."""
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
    entries = _decode_header(text, place)
    arrays: dict[str, ArrayHeader] = {}
    types: dict[str, str] = {}
    end = 8 + length
    for name, entry in sorted(entries.items(), key=lambda each: each[1].data_offsets):
        header = _check_entry(entry, 8 + length, f"{place}[{printable(name)}]")
        if header.offset != end:
            raise damaged(place, KIND, f"tensor {name!r} overlaps another or leaves a gap")
        end = header.size
        arrays[name], types[name] = header, entry.dtype
    if end != size:
        raise truncated(place, end, size)
    return arrays, types


def _decode_header(text: bytes, place: str) -> dict[str, TensorEntry]:
    import msgspec

    if text[:1] != b"{":
        raise wrong_kind(place, KIND, len(text).to_bytes(8, "little") + text[:8])
    try:
        raw = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        raw.pop("__metadata__", None)
        return {name: msgspec.json.decode(each, type=TensorEntry) for name, each in raw.items()}
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise damaged(place, KIND, str(error)) from error


def _check_entry(entry: TensorEntry, base: int, where: str) -> ArrayHeader:
    begin, end = entry.data_offsets
    if len(entry.shape) > 16 or min([begin, end, *entry.shape]) < 0 or end < begin:
        raise damaged(where, KIND, "negative or too many sizes")
    if entry.dtype not in TYPES:  # float8 and the like: an error only if it is named
        return ArrayHeader((end - begin,), np.dtype("V1"), fortran=False, offset=base + begin)
    dtype = np.dtype(TYPES[entry.dtype])
    if end - begin != prod(entry.shape) * dtype.itemsize:
        raise damaged(where, KIND, f"{end - begin} bytes for shape {tuple(entry.shape)}")
    return ArrayHeader(tuple(entry.shape), dtype, fortran=False, offset=base + begin)

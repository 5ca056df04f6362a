"""npz and safetensors: files of named arrays, one of which holds the vectors.

An npz file is a zip archive: arrays are mapped where they are stored, streamed where
deflated. A safetensors file has a JSON header, which is checked before it is trusted.
"""

import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from isoscope.dataclass import dataclass
from isoscope.errors import SourceError
from isoscope.memory import as_bytes
from isoscope.registry import unknown
from isoscope.source.bytes import FREE, RATIO, ByteSource, read_exactly
from isoscope.source.columns import (
    DOCUMENTS_PER_CHUNK,
    add_labels,
    document_chunks,
    labels_kind,
    labels_length,
)
from isoscope.source.file_errors import ZIP, border, damaged, printable, truncated, wrong_kind
from isoscope.source.npy import ArrayHeader, map_array, map_blocks, read_blocks, read_header
from isoscope.source.row_source import (
    PassCounts,
    Role,
    RowSource,
    VectorRequest,
    check_matrix,
    check_numeric,
    plain_rows,
)
from isoscope.types import Array, Chunk

NPZ = "an npz file"
SAFETENSORS = "a safetensors file"
PIECE = 1 << 20  # bytes of labels read at a time
Take = Callable[[int], list[str] | Array]  # the next labels
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


def vectors_array(arrays: Mapping[str, ArrayHeader], request: VectorRequest, place: str) -> str:
    """The name of the array to read: the one named, or the only two-dimensional one."""
    name = request.column
    if name is None:
        name = _only_array(arrays, request.roles.values(), place)
    elif name not in arrays:
        raise unknown("array", name, arrays)
    where = f"{place}[{printable(name)}]"
    check_numeric(arrays[name].dtype, where)
    check_matrix(arrays[name].shape, where)
    return name


def label_arrays(
    arrays: Mapping[str, ArrayHeader], request: VectorRequest, rows: int, place: str
) -> dict[Role, str]:
    """The names of the arrays that hold labels: one-dimensional, one entry per row."""
    for role, name in request.roles.items():
        if name not in arrays:
            raise unknown("array", name, arrays)
        header = arrays[name]
        if header.dtype.kind not in "iuSU" or header.dtype.itemsize > 1 << 20:
            raise labels_kind(role, place, str(header.dtype))
        if len(header.shape) != 1:
            raise labels_kind(role, place, f"an array of shape {header.shape}")
        if header.shape[0] != rows:
            raise labels_length(role, place, rows, header.shape[0])
    return request.roles


def _only_array(arrays: Mapping[str, ArrayHeader], labels: Iterable[str], place: str) -> str:
    usable = [
        name
        for name, header in arrays.items()
        if len(header.shape) == 2 and header.dtype.kind in "fiub" and name not in labels
    ]
    if len(usable) == 1:
        return usable[0]
    if not usable and len(arrays) == 1:
        return next(iter(arrays))  # its own error is the clearest message
    shapes = [f"{printable(name)} {arrays[name].shape}" for name in (usable or arrays)]
    listed = ", ".join(shapes[:12]) + (", ..." if len(shapes) > 12 else "")
    raise SourceError(
        f"expected one two-dimensional array of numbers in {place}, got {len(usable)}",
        hint=f"name one with --column: {listed}"
        if usable
        else f"save the vectors as an array of shape (rows, width); found: {listed or 'none'}",
        slug="which-array",
    )


class Archive:
    """The arrays of an npz file, each with a header checked against the size of its member."""

    def __init__(self, path: Path, place: str) -> None:
        self.path = path
        self.place = place
        self.arrays: dict[str, ArrayHeader] = {}
        self.stored: set[str] = set()  # the names of those that are not compressed
        self.packed: dict[str, int] = {}  # bytes of the others in the file
        with border(place, NPZ), zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if not info.filename.endswith(".npy"):
                    continue
                # zipfile unpacks other methods in pieces of unbounded size.
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise damaged(place, NPZ, f"compression method {info.compress_type}")
                name = info.filename[:-4]
                where = f"{place}[{printable(name)}]"
                with archive.open(info) as stream:
                    header = read_header(cast(BinaryIO, stream), where)
                if header.size != info.file_size:
                    raise truncated(where, header.size, info.file_size)
                self.arrays[name] = header
                if info.compress_type == zipfile.ZIP_STORED:
                    self.stored.add(name)
                else:
                    self.packed[name] = info.compress_size

    def check_packed(self, names: Iterable[str]) -> None:
        """Refuse arrays that would unpack to far more than numbers do."""
        for name in names:
            packed, size = self.packed.get(name), self.arrays[name].size
            if packed is not None and size > max(FREE, packed * RATIO):
                raise SourceError(
                    f"expected at most {RATIO} times its packed size in "
                    f"{self.place}[{printable(name)}], got {as_bytes(size)} from "
                    f"{as_bytes(packed)}",
                    hint="most of it is one value; if it is meant, save it unpacked with "
                    "np.save or np.savez",
                    slug="npz-packed",
                )

    def blocks(
        self, archive: zipfile.ZipFile, name: str, limit: int, start: int, stop: int | None
    ) -> Iterator[tuple[int, Array]]:
        """Blocks of rows; a compressed array is always read from its first row."""
        if name in self.stored:
            stored = self._in_file(archive, name)
            yield from map_blocks(
                self.path, stored, limit, place=self.place, start=start, stop=stop
            )
            return
        with archive.open(f"{name}.npy") as member:
            stream = cast(BinaryIO, member)
            read_header(stream, self.place)
            yield from read_blocks(stream, self.arrays[name], limit, self.place)

    def labels(self, stack: ExitStack, archive: zipfile.ZipFile, name: str, start: int) -> Take:
        """A function that returns the next labels, from a row on."""
        header = self.arrays[name]
        if start:
            stream = stack.enter_context(self.path.open("rb"))
            first = self._in_file(archive, name).offset
            stream.seek(first + start * header.dtype.itemsize)
        else:
            stream = cast(BinaryIO, stack.enter_context(archive.open(f"{name}.npy")))
            read_header(stream, self.place)
        return _label_reader(stream, header, self.place)

    def _in_file(self, archive: zipfile.ZipFile, name: str) -> ArrayHeader:
        """The header of a stored array, with the offset of its numbers in the whole file."""
        info = archive.getinfo(f"{name}.npy")
        with self.path.open("rb") as file:
            file.seek(info.header_offset)
            local = read_exactly(file, 30, self.place)  # a header of variable length
        lengths = int.from_bytes(local[26:28], "little") + int.from_bytes(
            local[28:30], "little"
        )
        header = self.arrays[name]
        return replace(header, offset=info.header_offset + 30 + lengths + header.offset)


def open_npz(data: ByteSource, request: VectorRequest) -> RowSource:
    """The rows of one array of an npz file."""
    path, place = cast(Path, data.path), data.place
    head = data.head(16)
    if not head.startswith((ZIP, b"PK\x05\x06")):
        raise wrong_kind(place, NPZ, head)
    npz = Archive(path, place)
    name = vectors_array(npz.arrays, request, place)
    header = npz.arrays[name]
    n, d = header.shape
    labels = label_arrays(npz.arrays, request, n, place)
    npz.check_packed([name, *labels.values()])

    def read(limit: int, _counts: PassCounts, start: int, stop: int | None) -> Iterator[Chunk]:
        with border(place, NPZ), zipfile.ZipFile(path) as archive, ExitStack() as stack:
            takes = {
                role: npz.labels(stack, archive, each, start) for role, each in labels.items()
            }
            yield from _label_blocks(data, npz.blocks(archive, name, limit, start, stop), takes)

    def documents() -> Iterator[Chunk]:
        with border(place, NPZ), zipfile.ZipFile(path) as archive, ExitStack() as stack:
            take = npz.labels(stack, archive, labels["document"], 0)
            most = DOCUMENTS_PER_CHUNK
            blocks = ((at, np.empty((min(most, n - at), 0))) for at in range(0, n, most))
            yield from _label_blocks(data, blocks, {"document": take})

    seekable = not header.fortran and npz.stored.issuperset([name, *labels.values()])
    return RowSource(
        name=data.name,
        width=d,
        rows=n,
        rereadable=data.rereadable,
        dtype=header.dtype.name,
        place=place,
        read=read,
        stamp=lambda: data.stamp(name),
        has_documents="document" in labels,
        starts=range(n) if seekable else (0,),
        documents=documents if "document" in labels else None,
    )


def _label_blocks(
    data: ByteSource, blocks: Iterable[tuple[int, Array]], takes: Mapping[Role, Take]
) -> Iterator[Chunk]:
    for start, block in blocks:
        labels = {role: take(len(block)) for role, take in takes.items()}
        chunk = Chunk(plain_rows(block), data.name, start, place=data.place)
        yield add_labels(chunk, labels)


def _label_reader(stream: BinaryIO, header: ArrayHeader, place: str) -> Take:
    """A function that returns the next labels of a stream positioned at the first.

    Strings are read in pieces and returned as Python strings: a fixed width of a thousand
    characters costs 4 kB per row however short they are.
    """
    item = header.dtype.itemsize

    def take(count: int) -> list[str] | Array:
        if header.dtype.kind in "iu":
            native = header.dtype.newbyteorder("=")
            raw = read_exactly(stream, count * item, place)
            return np.frombuffer(raw, header.dtype).astype(native)
        values: list[str] = []
        while len(values) < count:
            some = min(count - len(values), max(1, PIECE // max(1, item)))
            raw = read_exactly(stream, some * item, place)
            listed = np.frombuffer(raw, header.dtype).tolist()
            if header.dtype.kind == "S":
                listed = [each.decode("utf-8", "replace") for each in listed]
            values.extend(listed)
        return values

    return take


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
        values, _ = map_array(path, arrays[labels["document"]], place=place)
        return document_chunks(values, data.name, place)

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
            raise damaged(place, SAFETENSORS, f"a header of {length} bytes")
        file.seek(8)
        text = file.read(length)
    entries = _decode_header(text, place)
    arrays: dict[str, ArrayHeader] = {}
    types: dict[str, str] = {}
    end = 8 + length
    for name, entry in sorted(entries.items(), key=lambda each: each[1].data_offsets):
        header = _check_entry(entry, 8 + length, f"{place}[{printable(name)}]")
        if header.offset != end:
            raise damaged(
                place, SAFETENSORS, f"tensor {name!r} overlaps another or leaves a gap"
            )
        end = header.size
        arrays[name], types[name] = header, entry.dtype
    if end != size:
        raise truncated(place, end, size)
    return arrays, types


def _decode_header(text: bytes, place: str) -> dict[str, TensorEntry]:
    import msgspec

    if text[:1] != b"{":
        raise wrong_kind(place, SAFETENSORS, len(text).to_bytes(8, "little") + text[:8])
    try:
        raw = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        raw.pop("__metadata__", None)
        return {name: msgspec.json.decode(each, type=TensorEntry) for name, each in raw.items()}
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise damaged(place, SAFETENSORS, str(error)) from error


def _check_entry(entry: TensorEntry, base: int, where: str) -> ArrayHeader:
    begin, end = entry.data_offsets
    if len(entry.shape) > 16 or min([begin, end, *entry.shape]) < 0 or end < begin:
        raise damaged(where, SAFETENSORS, "negative or too many sizes")
    if entry.dtype not in TYPES:  # float8 and the like: an error only if it is named
        return ArrayHeader((end - begin,), np.dtype("V1"), fortran=False, offset=base + begin)
    dtype = np.dtype(TYPES[entry.dtype])
    if end - begin != prod(entry.shape) * dtype.itemsize:
        raise damaged(where, SAFETENSORS, f"{end - begin} bytes for shape {tuple(entry.shape)}")
    return ArrayHeader(tuple(entry.shape), dtype, fortran=False, offset=base + begin)

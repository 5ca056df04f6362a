"""npz: arrays in a zip archive, mapped where they are stored, streamed where deflated."""

import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from isoscope.source.border import ZIP, border, damaged, printable, truncated, wrong_kind
from isoscope.source.bytes import ByteSource, read_exactly
from isoscope.source.columns import label_arrays, vectors_array
from isoscope.source.npy import ArrayHeader, map_blocks, read_blocks, read_header
from isoscope.source.row_labels import DOCUMENTS_PER_CHUNK, add_labels
from isoscope.source.row_source import PassCounts, Role, RowSource, VectorRequest
from isoscope.source.shape import plain_rows
from isoscope.types import Array, Chunk

KIND = "an npz file"
PIECE = 1 << 20  # bytes of labels read at a time
Take = Callable[[int], list[str] | Array]  # the next labels


@dataclass(frozen=True, slots=True)
class Archive:
    """The arrays of an npz file."""

    path: Path
    place: str
    arrays: dict[str, ArrayHeader] = field(default_factory=dict[str, ArrayHeader])
    stored: set[str] = field(default_factory=set[str])  # those that are not compressed

    def blocks(
        self, archive: zipfile.ZipFile, name: str, limit: int, start: int, stop: int | None
    ) -> Iterator[tuple[int, Array]]:
        """Blocks of rows; a compressed array is always read from its first row."""
        if name in self.stored:
            header = self._in_file(archive, name)
            yield from map_blocks(
                self.path, header, limit, place=self.place, start=start, stop=stop
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
            offset = self._in_file(archive, name).offset
            stream.seek(offset + start * header.dtype.itemsize)
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
        raise wrong_kind(place, KIND, head)
    npz = read_archive(path, place)
    name = vectors_array(npz.arrays, request, place)
    header = npz.arrays[name]
    n, d = header.shape
    labels = label_arrays(npz.arrays, request, n, place)

    def read(limit: int, _counts: PassCounts, start: int, stop: int | None) -> Iterator[Chunk]:
        with border(place, KIND), zipfile.ZipFile(path) as archive, ExitStack() as stack:
            takes = {
                role: npz.labels(stack, archive, each, start) for role, each in labels.items()
            }
            blocks = npz.blocks(archive, name, limit, start, stop)
            yield from _label_blocks(data, blocks, takes)

    def documents() -> Iterator[Chunk]:
        with border(place, KIND), zipfile.ZipFile(path) as archive, ExitStack() as stack:
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


def read_archive(path: Path, place: str) -> Archive:
    """The header of each array, checked against the size of its member."""
    found = Archive(path, place)
    with border(place, KIND), zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if not info.filename.endswith(".npy"):
                continue
            # zipfile unpacks other methods in pieces of unbounded size.
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise damaged(place, KIND, f"compression method {info.compress_type}")
            name = info.filename[:-4]
            where = f"{place}[{printable(name)}]"
            with archive.open(info) as stream:
                header = read_header(cast(BinaryIO, stream), where)
            if header.size != info.file_size:
                raise truncated(where, header.size, info.file_size)
            found.arrays[name] = header
            if info.compress_type == zipfile.ZIP_STORED:
                found.stored.add(name)
    return found


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

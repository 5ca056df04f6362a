"""npz: arrays in a zip archive, mapped where they are stored, streamed where deflated."""

import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import IO, BinaryIO, cast

import numpy as np

from isoscope.source.border import border, damaged, shown, truncated
from isoscope.source.feed import Feed, exactly, peeked
from isoscope.source.header import Header, read_header
from isoscope.source.labels import Role, labelled
from isoscope.source.magic import ZIP, wrong_kind
from isoscope.source.mapped import mapped_blocks
from isoscope.source.member import label_members, vectors_member
from isoscope.source.npy import blocks_of
from isoscope.source.shape import plain
from isoscope.source.source import Source, Tally, Wanted
from isoscope.types import Array, Chunk

KIND = "an npz file"
PIECE = 1 << 20  # bytes of labels read at a time
Next = Callable[[int], list[str] | Array]


def open_npz(feed: Feed, wanted: Wanted) -> Source:
    """The rows of one array of an npz file."""
    path, place = cast(Path, feed.path), feed.place
    head = peeked(feed, 16)
    if not head.startswith((ZIP, b"PK\x05\x06")):
        raise wrong_kind(place, KIND, head)
    arrays = _arrays(path, place)
    name = vectors_member(arrays, wanted, place)
    header = arrays[name]
    n, d = header.shape
    labels = label_members(arrays, wanted, n, place)

    def read(limit: int, _tally: Tally) -> Iterator[Chunk]:
        with ExitStack() as stack:
            stack.enter_context(border(place, KIND))
            archive = stack.enter_context(zipfile.ZipFile(path))
            beside: dict[Role, Next] = {}
            for role, member in labels.items():
                stream = stack.enter_context(archive.open(f"{member}.npy"))
                beside[role] = _labels(cast(BinaryIO, stream), arrays[member], place)
            for start, block in _blocks(archive, name, header, limit, path, place):
                rows = plain(block)
                carried = {role: take(len(rows)) for role, take in beside.items()}
                yield Chunk(rows, feed.name, start, place=place, **labelled(carried, place))

    return Source(
        feed.name, d, n, feed.rereadable, header.dtype.name, place, read,
        lambda: feed.stamp(name), has_documents="document" in labels,
    )  # fmt: skip


def _arrays(path: Path, place: str) -> dict[str, Header]:
    """The header of each array, checked against the size of its member."""
    arrays: dict[str, Header] = {}
    with border(place, KIND), zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if not info.filename.endswith(".npy"):
                continue
            # zipfile unpacks other methods in pieces of unbounded size.
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise damaged(place, KIND, f"compression method {info.compress_type}")
            with archive.open(info) as stream:
                where = f"{place}[{shown(info.filename[:-4])}]"
                header = read_header(cast(BinaryIO, stream), where)
            if header.size != info.file_size:
                raise truncated(where, header.size, info.file_size)
            arrays[info.filename[:-4]] = header
    return arrays


def _blocks(
    archive: zipfile.ZipFile, name: str, header: Header, limit: int, path: Path, place: str
) -> Iterator[tuple[int, Array]]:
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type == zipfile.ZIP_STORED:
        start = _data_offset(path, info, place)
        stored = replace(header, offset=start + header.offset)
        yield from mapped_blocks(path, stored, limit, place=place)
        return
    with archive.open(info) as stream:
        read_header(cast(BinaryIO, stream), place)
        yield from blocks_of(cast(BinaryIO, stream), header, limit, place)


def _data_offset(path: Path, info: zipfile.ZipInfo, place: str) -> int:
    """Where a stored member begins: behind a local header of its own length."""
    with path.open("rb") as file:
        file.seek(info.header_offset)
        local = exactly(cast(BinaryIO, file), 30, place)
    lengths = int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
    return info.header_offset + 30 + lengths


def _labels(stream: BinaryIO | IO[bytes], header: Header, place: str) -> Next:
    """A function that returns the next so many labels.

    Strings come in pieces and leave as Python strings: a fixed width of a thousand
    characters costs 4 kB a row however short they are.
    """
    source = cast(BinaryIO, stream)
    read_header(source, place)
    item = header.dtype.itemsize

    def take(count: int) -> list[str] | Array:
        if header.dtype.kind in "iu":
            native = header.dtype.newbyteorder("=")
            raw = exactly(source, count * item, place)
            return np.frombuffer(raw, header.dtype).astype(native)
        values: list[str] = []
        while len(values) < count:
            some = min(count - len(values), max(1, PIECE // max(1, item)))
            raw = exactly(source, some * item, place)
            values.extend(_strings(np.frombuffer(raw, header.dtype)))
        return values

    return take


def _strings(values: Array) -> list[str]:
    if values.dtype.kind == "S":
        return [each.decode("utf-8", "replace") for each in values.tolist()]
    return values.tolist()

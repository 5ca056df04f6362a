"""npz: arrays in a zip archive, mapped where they are stored, streamed where deflated."""

import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from isoscope.source.border import border, damaged, shown, truncated
from isoscope.source.feed import Feed, exactly, peeked
from isoscope.source.header import Header, read_header
from isoscope.source.labels import DOCUMENTS_PER_CHUNK, Role, labelled
from isoscope.source.magic import ZIP, wrong_kind
from isoscope.source.mapped import mapped_blocks
from isoscope.source.member import label_members, vectors_member
from isoscope.source.npy import blocks_of
from isoscope.source.shape import plain
from isoscope.source.source import Seek, Source, Tally, Wanted
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
    arrays, stored = _arrays(path, place)
    name = vectors_member(arrays, wanted, place)
    header = arrays[name]
    n, d = header.shape
    labels = label_members(arrays, wanted, n, place)

    def read(limit: int, _tally: Tally) -> Iterator[Chunk]:
        with ExitStack() as stack:
            stack.enter_context(border(place, KIND))
            archive = stack.enter_context(zipfile.ZipFile(path))
            beside = {
                role: _unpack(stack, archive, member, arrays[member], place)
                for role, member in labels.items()
            }
            blocks = _blocks(archive, name, header, limit, path, place)
            yield from _chunks(feed, blocks, beside)

    def read_range(limit: int, _tally: Tally, start: int, stop: int | None) -> Iterator[Chunk]:
        with ExitStack() as stack:
            stack.enter_context(border(place, KIND))
            archive = stack.enter_context(zipfile.ZipFile(path))
            beside: dict[Role, Next] = {}
            for role, member in labels.items():
                lies = _where(archive, member, arrays[member], path, place)
                stream = stack.enter_context(path.open("rb"))
                stream.seek(lies.offset + start * lies.dtype.itemsize)
                beside[role] = _labels(stream, lies, place)
            lies = _where(archive, name, header, path, place)
            blocks = mapped_blocks(path, lies, limit, place=place, start=start, stop=stop)
            yield from _chunks(feed, blocks, beside)

    def documents() -> Iterator[Chunk]:
        member = labels["document"]
        with ExitStack() as stack:
            stack.enter_context(border(place, KIND))
            archive = stack.enter_context(zipfile.ZipFile(path))
            take = _unpack(stack, archive, member, arrays[member], place)
            some = DOCUMENTS_PER_CHUNK
            blocks = ((at, np.empty((min(some, n - at), 0))) for at in range(0, n, some))
            yield from _chunks(feed, blocks, {"document": take})

    return Source(
        feed.name, d, n, feed.rereadable, header.dtype.name, place, read,
        lambda: feed.stamp(name), has_documents="document" in labels,
        seek=Seek(range(n), read_range)
        if not header.fortran and stored.issuperset([name, *labels.values()]) else None,
        documents=documents if "document" in labels else None,
    )  # fmt: skip


def _chunks(
    feed: Feed, blocks: Iterable[tuple[int, Array]], beside: Mapping[Role, Next]
) -> Iterator[Chunk]:
    """Blocks of vectors with the next labels of each role."""
    for start, block in blocks:
        carried = {role: take(len(block)) for role, take in beside.items()}
        labels = labelled(carried, feed.place)
        yield Chunk(plain(block), feed.name, start, place=feed.place, **labels)


def _arrays(path: Path, place: str) -> tuple[dict[str, Header], set[str]]:
    """The header of each array, checked against the size of its member; which are stored."""
    arrays: dict[str, Header] = {}
    stored: set[str] = set()
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
            if info.compress_type == zipfile.ZIP_STORED:
                stored.add(info.filename[:-4])
    return arrays, stored


def _blocks(
    archive: zipfile.ZipFile, name: str, header: Header, limit: int, path: Path, place: str
) -> Iterator[tuple[int, Array]]:
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type == zipfile.ZIP_STORED:
        lies = _where(archive, name, header, path, place)
        yield from mapped_blocks(path, lies, limit, place=place)
        return
    with archive.open(info) as stream:
        read_header(cast(BinaryIO, stream), place)
        yield from blocks_of(cast(BinaryIO, stream), header, limit, place)


def _where(
    archive: zipfile.ZipFile, name: str, header: Header, path: Path, place: str
) -> Header:
    """The header of a stored array, with the place of its numbers in the whole file."""
    start = _data_offset(path, archive.getinfo(f"{name}.npy"), place)
    return replace(header, offset=start + header.offset)


def _data_offset(path: Path, info: zipfile.ZipInfo, place: str) -> int:
    """Where a stored member begins: behind a local header of its own length."""
    with path.open("rb") as file:
        file.seek(info.header_offset)
        local = exactly(cast(BinaryIO, file), 30, place)
    lengths = int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
    return info.header_offset + 30 + lengths


def _unpack(
    stack: ExitStack, archive: zipfile.ZipFile, name: str, header: Header, place: str
) -> Next:
    """A function that returns the next labels of a member, stored or deflated."""
    stream = cast(BinaryIO, stack.enter_context(archive.open(f"{name}.npy")))
    read_header(stream, place)
    return _labels(stream, header, place)


def _labels(stream: BinaryIO, header: Header, place: str) -> Next:
    """A function that returns the next labels of a stream that stands at the first.

    Strings come in pieces and leave as Python strings: a fixed width of a thousand
    characters costs 4 kB a row however short they are.
    """
    item = header.dtype.itemsize

    def take(count: int) -> list[str] | Array:
        if header.dtype.kind in "iu":
            native = header.dtype.newbyteorder("=")
            raw = exactly(stream, count * item, place)
            return np.frombuffer(raw, header.dtype).astype(native)
        values: list[str] = []
        while len(values) < count:
            some = min(count - len(values), max(1, PIECE // max(1, item)))
            raw = exactly(stream, some * item, place)
            values.extend(_strings(np.frombuffer(raw, header.dtype)))
        return values

    return take


def _strings(values: Array) -> list[str]:
    if values.dtype.kind == "S":
        return [each.decode("utf-8", "replace") for each in values.tolist()]
    return values.tolist()

"""Open vectors: a path, a folder, a stream, an array, a tensor or a data frame."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from isoscope.errors import SourceError
from isoscope.source.bytes import ByteSource, StreamBytes, of_parts, open_bytes
from isoscope.source.columnar import open_arrow, open_parquet
from isoscope.source.columns import attach_labels
from isoscope.source.csv import open_csv
from isoscope.source.file_errors import (
    ARROW_FILE,
    ARROW_STREAM,
    BOM,
    NPY,
    describe_content,
    empty,
)
from isoscope.source.jsonl import open_jsonl
from isoscope.source.memory import is_frame, open_array, open_frame
from isoscope.source.named_arrays import open_npz, open_safetensors
from isoscope.source.npy import open_npy
from isoscope.source.paths import list_files, open_path
from isoscope.source.row_source import PassCounts, Role, RowSource, VectorRequest
from isoscope.types import Chunk

HEAD = 4096  # bytes by which the format of a stream is recognised
Opener = Callable[[ByteSource, VectorRequest], RowSource]
OPENERS: dict[str, Opener] = {
    ".npy": open_npy,
    ".npz": open_npz,
    ".safetensors": open_safetensors,
    ".parquet": open_parquet,
    ".pq": open_parquet,
    ".arrow": open_arrow,
    ".arrows": open_arrow,
    ".ipc": open_arrow,
    ".feather": open_arrow,
    ".jsonl": open_jsonl,
    ".ndjson": open_jsonl,
    ".csv": open_csv,
    ".tsv": partial(open_csv, separator="\t"),
}
_NO_PICKLES = "pickles can run code and are not opened: save as safetensors or npy"
_ADVICE = {
    ".pt": _NO_PICKLES,
    ".pth": _NO_PICKLES,
    ".pkl": _NO_PICKLES,
    ".bin": "save the vectors as npy or safetensors",
    ".json": "write one list or object per line and call it .jsonl",
    ".gz": "unpack it into a pipe: zcat vectors.csv.gz | isoscope measure -",
    ".txt": "call it .csv if its cells are separated by commas, .tsv if by tabs",
}


def open_source(
    vectors: object,
    *,
    column: str | None = None,
    document: object = None,
    id: object = None,
    text: object = None,
    name: str | None = None,
    skip_bad: bool = False,
    key: str | None = None,
) -> RowSource:
    """Open vectors for reading: only headers and first rows are read here.

    `column`, or `key`, names the column of a table or the array of an npz or safetensors
    file. `document`, `id` and `text` name columns or arrays of labels; a path ending in
    .npy, or a sequence with one entry per row, supplies labels apart from the vectors.
    With `skip_bad`, rows that are not vectors are dropped and counted.
    """
    names: dict[Role, str] = {}
    apart: dict[Role, object] = {}
    labels: dict[Role, object] = {"document": document, "id": id, "text": text}
    for role, value in labels.items():
        if isinstance(value, str) and not value.endswith(".npy"):
            names[role] = value
        elif isinstance(value, str | os.PathLike):
            apart[role] = Path(value).expanduser()
        elif value is not None:
            apart[role] = value
    if column is not None and key is not None and column != key:
        raise SourceError(
            f"cannot read column {column!r} with key {key!r}",
            hint="both mean the same: use one",
            slug="column-and-key",
        )
    request = VectorRequest(
        column=key if column is None else column, skip_bad=skip_bad, **names
    )
    files = frozenset(each.resolve() for each in apart.values() if isinstance(each, Path))
    return attach_labels(_open(vectors, request, name, files), apart)


def open_file(path: Path, request: VectorRequest, name: str | None = None) -> RowSource:
    """The rows of one file."""
    suffix = path.suffix.lower()
    if suffix not in OPENERS:
        raise SourceError(
            f"expected a file ending in {', '.join(OPENERS)}, got {path}",
            hint=_ADVICE.get(suffix, "convert it, or give it the suffix of its format"),
            slug="unknown-suffix",
        )
    return OPENERS[suffix](open_bytes(path, name or path.stem), request)


def open_folder(
    folder: Path,
    request: VectorRequest,
    name: str | None = None,
    exclude: frozenset[Path] = frozenset(),
) -> RowSource:
    """The rows of all files below a folder, one file after another."""
    place = str(folder)
    known = list_files(
        folder, "a folder of vectors", lambda each: Path(each).suffix.lower() in OPENERS
    )
    paths = [path for path in known if path.resolve() not in exclude]
    if not paths:
        raise SourceError(
            f"expected files of vectors in {place}, got none",
            hint=f"looked for {', '.join(OPENERS)}; links that lead out are not followed",
            slug="folder-without-vectors",
        )
    names = _file_names(folder, paths, name)
    parts = tuple(
        open_file(path, request, each) for path, each in zip(paths, names, strict=True)
    )
    first = parts[0]
    for part in parts[1:]:
        if part.width != first.width:
            raise SourceError(
                f"expected vectors of width {first.width} as in {first.place}, "
                f"got width {part.width} in {part.place}",
                hint="measure files of different width separately",
                slug="folder-widths",
            )
    counts = [part.rows for part in parts]
    return RowSource(
        name=name or folder.resolve().name or "rows",
        width=first.width,
        rows=None if None in counts else sum(each or 0 for each in counts),
        rereadable=True,
        dtype=first.dtype if len({part.dtype for part in parts}) == 1 else "float64",
        place=place,
        read=first.read,  # never called: a pass reads the parts
        stamp=lambda: of_parts(part.fingerprint for part in parts),
        has_documents=first.has_documents,
        drops=request.skip_bad,
        parts=parts,
    )


def open_stream(stream: BinaryIO, request: VectorRequest, name: str, place: str) -> RowSource:
    """The rows of a stream, in the format that its first bytes show."""
    data = StreamBytes(stream, name, place)
    source = _recognise(data.head(HEAD), place)(data, request)

    def read(limit: int, counts: PassCounts, start: int, stop: int | None) -> Iterator[Chunk]:
        yield from source.read(limit, counts, start, stop)
        data.drain()

    return replace(source, read=read, live=True)


def _open(
    vectors: object, request: VectorRequest, name: str | None, exclude: frozenset[Path]
) -> RowSource:
    if not isinstance(vectors, str | os.PathLike):
        if hasattr(vectors, "read"):
            stream = cast(BinaryIO, vectors)
            return open_stream(stream, request, name or "stream", "the stream")
        if is_frame(vectors):
            return open_frame(vectors, request, name or "rows")
        return open_array(vectors, request, name or "rows")
    return open_path(
        Path(vectors).expanduser(),
        "vectors",
        "pipe them in: cat vectors.npy | isoscope measure -",
        stream=lambda stream, own, place: open_stream(stream, request, name or own, place),
        folder=lambda path: open_folder(path, request, name, exclude),
        file=lambda path: open_file(path, request, name),
    )


def _recognise(head: bytes, place: str) -> Opener:
    if not head:
        raise empty(place)
    if head.startswith(NPY):
        return open_npy
    if head.startswith((ARROW_STREAM, ARROW_FILE)):
        return open_arrow
    text = head.removeprefix(BOM).lstrip()
    if text[:1] in (b"[", b"{"):
        return open_jsonl
    if b"\0" in head or not describe_content(head).startswith("something"):
        raise SourceError(
            f"expected npy, an arrow stream, jsonl or csv on {place}, "
            f"got {describe_content(head)}",
            hint="save it to a file and pass its path",
            slug="stdin-format",
        )
    return open_csv


def _file_names(folder: Path, paths: Sequence[Path], prefix: str | None) -> list[str]:
    """Relative paths without suffix; with it where two files would have one name."""
    relative = [path.relative_to(folder) for path in paths]
    count = Counter(path.with_suffix("") for path in relative)
    names = [
        (path if count[path.with_suffix("")] > 1 else path.with_suffix("")).as_posix()
        for path in relative
    ]
    return [f"{prefix}/{each}" for each in names] if prefix else names

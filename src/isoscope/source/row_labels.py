"""Labels that lie beside the vectors: an npy file of their own, or a sequence."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from isoscope.errors import SourceError
from isoscope.source.border import truncated
from isoscope.source.feed import file_feed
from isoscope.source.header import read_header
from isoscope.source.labels import (
    Role,
    documents_alone,
    labelled,
    labels_kind,
    labels_length,
    short_of_labels,
)
from isoscope.source.mapped import mapped
from isoscope.source.ordinal import ordinals
from isoscope.source.source import Seek, Source, Tally, read_parts
from isoscope.types import Array, Chunk


def beside(source: Source, given: Mapping[Role, Any]) -> Source:
    """A source whose chunks carry labels that were given apart from it.

    Labels of a folder are cut into those of its files, so that each file has its own. That
    there are as many labels as rows is checked here where the rows are counted, and again
    for whatever is read, whether that is the whole source or a segment of it.
    """
    if not given:
        return source
    labels = {role: _labels(role, value) for role, value in given.items()}
    _check(source, labels)
    live = source.live or not all(isinstance(value, Path) for value in given.values())
    if not source.parts:
        return replace(_attach(source, labels), live=live)
    parts = tuple(_attach_each(source.parts, labels))
    return replace(
        source,
        read=read_parts(parts),
        parts=parts,
        has_documents=parts[0].has_documents,
        live=live,
        tally=Tally(),
    )


def _attach_each(parts: Iterable[Source], labels: Mapping[Role, Array]) -> Iterator[Source]:
    first = 0
    for part in parts:
        end = first + (part.rows or 0)
        yield _attach(part, {role: values[first:end] for role, values in labels.items()})
        first = end


def _attach(source: Source, labels: Mapping[Role, Array]) -> Source:
    """A source of one file, or none, with the labels of its rows."""
    seek = source.seek

    def attach(
        chunks: Iterator[Chunk], tally: Tally, start: int, stop: int | None
    ) -> Iterator[Chunk]:
        skipped = tally.skipped
        count = 0
        for chunk in chunks:
            at = ordinals(chunk)
            for role, values in labels.items():
                if len(at) and at[-1] >= len(values):
                    raise short_of_labels(role, source.place, int(at[-1]))
            carried: dict[Role, Any] = {role: values[at] for role, values in labels.items()}
            count += len(chunk)
            yield replace(chunk, **labelled(carried, source.place))
        end = start + count + tally.skipped - skipped
        for role, values in labels.items():
            if end != (len(values) if stop is None else stop):
                raise labels_length(role, source.place, end, len(values))

    def read(limit: int, tally: Tally) -> Iterator[Chunk]:
        return attach(source.read(limit, tally), tally, 0, None)

    def read_range(
        seek: Seek, limit: int, tally: Tally, start: int, stop: int | None
    ) -> Iterator[Chunk]:
        return attach(seek.read(limit, tally, start, stop), tally, start, stop)

    def documents() -> Iterator[Chunk]:
        return documents_alone(labels["document"], source.name, source.place)

    apart = "document" in labels
    return replace(
        source,
        read=read,
        seek=None if seek is None else Seek(seek.starts, partial(read_range, seek)),
        documents=documents if apart else source.documents,
        has_documents=apart or source.has_documents,
        tally=Tally(),
    )


def _check(source: Source, labels: Mapping[Role, Array]) -> None:
    """Refuse labels that cannot be matched with the rows, as far as is known by now."""
    if any(part.rows is None for part in source.parts):
        raise SourceError(
            f"cannot match labels with the rows of {source.place}, which it does not count",
            hint="put the labels into columns of the csv or jsonl files and name those",
            slug="labels-folder",
        )
    for role, values in labels.items():
        if source.rows is not None and len(values) != source.rows:
            raise labels_length(role, source.place, source.rows, len(values))


def _labels(role: Role, value: Any) -> Array:
    if isinstance(value, Path):
        return _from_npy(role, value)
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        value = value.detach().cpu()
    if isinstance(value, list | tuple):  # fixed-width strings would be as wide as the longest
        array = np.empty(len(value), dtype=object)
        array[:] = value
    else:
        array = np.asarray(value)
    if array.ndim != 1 or array.dtype.kind not in "iuSUOT":
        raise labels_kind(role, "the rows", f"an array of {array.dtype} of shape {array.shape}")
    return array


def _from_npy(role: Role, path: Path) -> Array:
    place = str(path)
    with file_feed(path, path.stem).open(True) as stream:
        header = read_header(stream, place)
    if len(header.shape) != 1 or header.dtype.kind not in "iuSU":
        raise labels_kind(role, place, f"an array of {header.dtype} of shape {header.shape}")
    if header.size != path.stat().st_size:
        raise truncated(place, header.size, path.stat().st_size)
    if not header.shape[0] or not header.dtype.itemsize:
        return np.empty(header.shape, dtype=header.dtype)
    return mapped(path, header, place=place)[0]

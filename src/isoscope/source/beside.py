"""Labels that lie beside the vectors: an npy file of their own, or a sequence."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from isoscope.errors import SourceError
from isoscope.source.border import truncated
from isoscope.source.feed import file_feed
from isoscope.source.header import read_header
from isoscope.source.labels import (
    Role,
    labelled,
    labels_kind,
    labels_length,
    short_of_labels,
)
from isoscope.source.mapped import mapped
from isoscope.source.ordinal import ordinals
from isoscope.source.source import Source, Tally
from isoscope.types import Array, Chunk


def beside(source: Source, given: Mapping[Role, Any]) -> Source:
    """A source whose chunks carry labels that were given apart from it."""
    if not given:
        return source
    labels = {role: _labels(role, value) for role, value in given.items()}
    _check(source, labels)
    firsts = _firsts(source)

    def read(limit: int, tally: Tally) -> Iterator[Chunk]:
        count = 0
        for chunk in source.read(limit, tally):
            at = ordinals(chunk) + firsts.get(chunk.source, 0)
            for role, values in labels.items():
                if len(at) and at[-1] >= len(values):
                    raise short_of_labels(role, source.place, int(at[-1]))
            carried: dict[Role, Any] = {role: values[at] for role, values in labels.items()}
            count += len(chunk)
            yield replace(chunk, **labelled(carried, source.place))
        for role, values in labels.items():
            if count + tally.skipped != len(values):
                raise labels_length(role, source.place, count + tally.skipped, len(values))

    documents = source.has_documents or "document" in labels
    return replace(source, read=read, has_documents=documents, tally=Tally())


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


def _firsts(source: Source) -> dict[str, int]:
    """The ordinal, in the whole folder, of the first row of each file."""
    firsts: dict[str, int] = {}
    total = 0
    for part in source.parts:
        firsts[part.name] = total
        total += part.rows or 0
    return firsts


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

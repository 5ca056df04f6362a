"""Chunks cut anew so that documents arrive whole, with a key and a position for each row."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np

from isoscope.accumulate import RowNames
from isoscope.hashing import named_documents, ordinal_documents
from isoscope.types import Array, Chunk


@dataclass(frozen=True, slots=True)
class Cut:
    """Rows of whole documents, ready to become a block."""

    rows: Array
    documents: Array | None  # keys; None where every row is its own document
    positions: Array | None
    keys: Array  # keys of the rows' documents, whether given or not
    ordinals: Array
    places: Array  # (n,) the file of each row, for messages
    names: RowNames | None = None  # where the source names its rows

    def __len__(self) -> int:
        return len(self.rows)

    def only(self, kept: Array) -> "Cut":
        """Return the cut with some of its rows."""
        return Cut(
            self.rows[kept],
            None if self.documents is None else self.documents[kept],
            None if self.positions is None else self.positions[kept],
            self.keys[kept],
            self.ordinals[kept],
            self.places[kept],
            None if self.names is None else self.names.only(kept),
        )


def whole_documents(chunks: Iterable[Chunk], *, seed: int) -> Iterator[Cut]:
    """Yield cuts of which no document is in two; the last of a chunk waits for the next."""
    waiting: list[Chunk] = []
    for chunk in chunks:
        if not len(chunk):  # every row of it was dropped
            continue
        if chunk.documents is None:
            yield _single(chunk, seed)
            continue
        if waiting and not _goes_on(waiting[-1], chunk):
            yield _join(waiting, seed)
            waiting = []
        cut = _last_start(chunk)
        if cut == 0:
            waiting.append(chunk)
            continue
        yield _join([*waiting, _part(chunk, 0, cut)], seed)
        waiting = [_part(chunk, cut, len(chunk))]
    if waiting:
        yield _join(waiting, seed)


def _goes_on(before: Chunk, chunk: Chunk) -> bool:
    """Whether the first document of a chunk is the last one of the chunk before."""
    if before.documents is None or chunk.documents is None:
        return False
    same = cast(Array, before.documents[-1:] == chunk.documents[:1])
    return bool(same.all())


def _last_start(chunk: Chunk) -> int:
    """Return where the last document of a chunk begins."""
    names = chunk.documents
    if names is None:
        return 0
    changes = np.flatnonzero(cast(Array, names[1:] != names[:-1])).tolist()
    return changes[-1] + 1 if changes else 0


def _ordinals(chunk: Chunk) -> Array:
    if chunk.ordinals is not None:
        return np.asarray(chunk.ordinals, dtype=np.uint64)
    return np.arange(chunk.start, chunk.start + len(chunk), dtype=np.uint64)


def _part(chunk: Chunk, start: int, end: int) -> Chunk:
    names = None if chunk.documents is None else chunk.documents[start:end]
    return Chunk(
        rows=chunk.rows[start:end].copy() if start else chunk.rows[start:end],
        source=chunk.source,
        start=chunk.start + start,
        documents=names,
        ids=None if chunk.ids is None else chunk.ids[start:end],
        texts=None if chunk.texts is None else chunk.texts[start:end],
        place=chunk.place,
        ordinals=_ordinals(chunk)[start:end],
    )


def _single(chunk: Chunk, seed: int) -> Cut:
    ordinals = _ordinals(chunk)
    keys = ordinal_documents(chunk.source, ordinals, seed=seed)
    return Cut(
        chunk.rows, None, None, keys, ordinals, _places(chunk), _row_names([chunk], ordinals)
    )


def _places(chunk: Chunk) -> Array:
    return np.broadcast_to(np.array(chunk.place, dtype=object), len(chunk))


def _join(parts: list[Chunk], seed: int) -> Cut:
    rows = parts[0].rows if len(parts) == 1 else np.concatenate([part.rows for part in parts])
    names = np.concatenate([np.asarray(part.documents).astype(str) for part in parts])
    ordinals = np.concatenate([_ordinals(part) for part in parts])
    keys = named_documents(names, seed=seed)
    is_new = cast(Array, keys[1:] != keys[:-1])
    starts = np.concatenate(([0], 1 + np.flatnonzero(is_new)))
    lengths: Array = np.diff(starts, append=len(keys))
    positions = np.arange(len(keys)) - np.repeat(starts, lengths)
    places = np.concatenate([_places(part) for part in parts])
    return Cut(
        rows,
        keys,
        positions.astype(np.uint64),
        keys,
        ordinals,
        places,
        _row_names(parts, ordinals),
    )


def _row_names(parts: list[Chunk], ordinals: Array) -> RowNames | None:
    """Return the ids and texts of chunks, where they come with any."""
    if parts[0].ids is None and parts[0].texts is None:
        return None
    ids = None if parts[0].ids is None else [each for part in parts for each in part.ids or ()]
    texts = None
    if parts[0].texts is not None:
        texts = [each for part in parts for each in part.texts or ()]
    return RowNames(ids, texts, ordinals)

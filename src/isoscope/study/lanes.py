"""The one loop of the package: chunks of rows into the accumulators of a survey.

Chunks are cut anew so that documents arrive whole, with a key and a position for each row.

Two lanes take the blocks in turn, each with accumulators of its own and one thread of
linear algebra, and are merged at the end: the fetching and sorting of one block goes on
while another is multiplied. Which lane takes a block depends on its number alone, so that
the result does not depend on timing. A single lane is this thread itself: where every core
has a process of its own, a second thread in each of them only gets in the way.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import field, replace
from functools import partial
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from isoscope.accumulate import Adjacent, ArrayBlock, Block, Groups, NamedRows, RowNames
from isoscope.accumulate.block import RowsOnDevice
from isoscope.accumulate.survey import Kind, Place, Survey
from isoscope.blas import one_blas_thread
from isoscope.dataclass import dataclass
from isoscope.errors import RowError
from isoscope.hashing import named_documents, ordinal_documents, row_documents
from isoscope.study.warn import row_name
from isoscope.types import Array, Chunk

LANES = 2
IN_FLIGHT = 3  # blocks at once, so that memory does not depend on the length of the stream
BLOCK_BYTES = 25_165_824  # 8192 rows of 768 float32 numbers
_FEW_ROWS = 2048  # a second lane would not be worth its start
LONGEST = 1e70  # of a billion such rows the sum of fourth powers does not overflow
SHORTEST = 1e-70  # below it fourth powers vanish, and then the squares lose their digits

Progress = Callable[[int], None]
# What rows without a document are known by: their order in a file and their content, their
# order alone, or their order in what the source is called.
KnownBy = Literal["content", "order", "source"]


def block_rows(width: int, itemsize: int = 4) -> int:
    """Return how many rows a block should have: an even number, so that no pair is cut.

    At least 256, but for rows so wide that these would be more than two usual blocks.
    """
    row = max(width * itemsize, 1)
    least = min(256, max(2 * BLOCK_BYTES // row, 2))
    return min(max(BLOCK_BYTES // row, least), 65_536) // 2 * 2


def even_blocks(rows: int | None, most: int) -> int:
    """Return how many rows a block should have so that no lane has more to do than another.

    Only few blocks are cut smaller: of many, one more or less does not count.

    >>> even_blocks(10_000, 8192), even_blocks(1_000_000, 8192), even_blocks(None, 8192)
    (5000, 8192, 8192)
    """
    if rows is None or not _FEW_ROWS < rows <= most * LANES * 2:
        return most
    blocks = -(-rows // most)
    blocks += -blocks % LANES
    return -(-rows // blocks // 2) * 2


@dataclass(frozen=True, slots=True)
class Cut:
    """Rows of whole documents, ready to become a block."""

    rows: Array  # (n, d)
    keys: Array  # (n,) keys of the rows' documents
    positions: Array | None  # (n,) None where every row is its own document
    ordinals: Array  # (n,)
    places: Array  # (n,) the file of each row, for messages
    names: RowNames | None  # where the source names its rows

    def __len__(self) -> int:
        return len(self.rows)

    def only(self, kept: Array) -> "Cut":
        """Return the cut with some of its rows."""
        return Cut(
            self.rows[kept],
            self.keys[kept],
            None if self.positions is None else self.positions[kept],
            self.ordinals[kept],
            self.places[kept],
            None if self.names is None else self.names.only(kept),
        )


def whole_documents(
    chunks: Iterable[Chunk], *, seed: int, known_by: KnownBy = "source"
) -> Iterator[Cut]:
    """Yield cuts of which no document is in two; the last of a chunk waits for the next."""
    waiting: list[Chunk] = []
    last = np.zeros(0)  # the name of the document that waits
    for chunk in chunks:
        if not len(chunk):  # every row of it was dropped
            continue
        names = chunk.documents
        if names is None:
            yield _cut([chunk], seed, known_by)
            continue
        if waiting and not bool(cast(Array, last == names[:1]).all()):
            yield _cut(waiting, seed, known_by)
            waiting = []
        last = names[-1:]
        changes = np.flatnonzero(cast(Array, names[1:] != names[:-1])).tolist()
        if not changes:
            waiting.append(chunk)
            continue
        start = changes[-1] + 1  # of the last document
        yield _cut([*waiting, _part(chunk, slice(start))], seed, known_by)
        rest = _part(chunk, slice(start, None))
        waiting = [replace(rest, rows=rest.rows.copy())]  # its reader may use the memory again
    if waiting:
        yield _cut(waiting, seed, known_by)


def _ordinals(chunk: Chunk) -> Array:
    if chunk.ordinals is not None:
        return np.asarray(chunk.ordinals, dtype=np.uint64)
    return np.arange(chunk.start, chunk.start + len(chunk), dtype=np.uint64)


def _part(chunk: Chunk, rows: slice) -> Chunk:
    return replace(
        chunk,
        rows=chunk.rows[rows],
        documents=None if chunk.documents is None else chunk.documents[rows],
        ids=None if chunk.ids is None else chunk.ids[rows],
        texts=None if chunk.texts is None else chunk.texts[rows],
        ordinals=_ordinals(chunk)[rows],
    )


def _row_keys(chunk: Chunk, ordinals: Array, seed: int, known_by: KnownBy) -> Array:
    """Return the keys of rows that are documents of their own."""
    if known_by == "content":
        return row_documents(chunk.rows, ordinals, seed=seed)
    source = chunk.source if known_by == "source" else f"file {chunk.part}"
    return ordinal_documents(source, ordinals, seed=seed)


def _cut(parts: list[Chunk], seed: int, known_by: KnownBy) -> Cut:
    """Return chunks that follow each other as one cut."""
    first = parts[0]
    rows = first.rows if len(parts) == 1 else np.concatenate([part.rows for part in parts])
    ordinals = np.concatenate([_ordinals(part) for part in parts])
    places = np.concatenate([np.full(len(part), part.place, dtype=object) for part in parts])
    names = None
    if first.ids is not None or first.texts is not None:
        names = RowNames(
            None if first.ids is None else [id for part in parts for id in part.ids or ()],
            None if first.texts is None else [t for part in parts for t in part.texts or ()],
            ordinals,
        )
    if first.documents is None:
        keys = _row_keys(first, ordinals, seed, known_by)
        return Cut(rows, keys, None, ordinals, places, names)
    documents = np.concatenate([np.asarray(part.documents).astype(str) for part in parts])
    keys = named_documents(documents, seed=seed)
    starts = np.concatenate(([0], 1 + np.flatnonzero(cast(Array, keys[1:] != keys[:-1]))))
    lengths: Array = np.diff(starts, append=len(keys))
    positions = np.arange(len(keys)) - np.repeat(starts, lengths)
    return Cut(rows, keys, positions.astype(np.uint64), ordinals, places, names)


@dataclass
class Lane:
    """One worker's survey, its scratch memory and the origin its blocks share."""

    survey: Survey = field(default_factory=Survey)
    origin: Array | None = None
    scratch: Array | None = None
    skipped: int = 0

    def take(self, place: Place, kinds: Sequence[Kind], skip_bad: bool, cut: Cut) -> int:
        """Show a cut to the accumulators; return how many rows it had."""
        rows = len(cut)
        block = self._block(cut, kinds)
        if skip_bad and not _measurable(block):
            finite = np.isfinite(cut.rows).all(axis=1)
            self._skip(cut, np.flatnonzero(~finite), place, kinds)
            cut = cut.only(np.flatnonzero(finite))
            block = self._block(cut, kinds)
        if not _measurable(block):
            raise unmeasurable(cut)
        self.survey.update(place, kinds, block)
        self.origin = block.origin if len(block) else self.origin
        return rows

    def _skip(self, cut: Cut, bad: Array, place: Place, kinds: Sequence[Kind]) -> None:
        """Count rows that hold NaN or infinity, and note what they are called."""
        self.skipped += len(bad)
        if cut.names is not None and NamedRows in kinds:
            here = self.survey.held.setdefault(place, {})
            named = here.setdefault(NamedRows, NamedRows(len(cut.rows.T)))
            assert isinstance(named, NamedRows)
            named.skip(cut.keys[bad], cut.names.only(bad))

    def _block(self, cut: Cut, kinds: Sequence[Kind]) -> Block:
        rows, room = cut.rows, self.scratch
        if room is None or len(room) < len(rows) or room.dtype != rows.dtype:
            self.scratch = np.empty(rows.shape, dtype=rows.dtype)
        return ArrayBlock(
            rows,
            cut.keys,
            cut.positions,
            origin=self.origin,
            scratch=self.scratch,
            sketched=Groups in kinds,
            independent=cut.positions is None,
            names=cut.names,
            ordinals=cut.ordinals if Adjacent in kinds else None,
        )


def run(
    chunks: Iterable[Chunk],
    place: Place,
    kinds: Sequence[Kind],
    *,
    seed: int = 0,
    skip_bad: bool = False,
    progress: Progress | None = None,
    start: Survey | None = None,
    lanes: int = LANES,
    known_by: KnownBy = "source",
) -> tuple[Survey, int]:
    """Read every chunk once; return what the accumulators know, and how many rows were bad.

    `start` holds accumulators to begin with: those of a second pass know what the first
    has found. The number of lanes changes the last bits.
    """
    start = start or Survey()
    taken = [Lane(Survey.from_state(*start.to_state())) for _ in range(lanes)]
    done = 0
    with one_blas_thread():
        cuts = whole_documents(chunks, seed=seed, known_by=known_by)
        for rows in _share(
            cuts, [partial(lane.take, place, kinds, skip_bad) for lane in taken]
        ):
            done += rows
            if progress is not None:
                progress(done)
    for lane in taken:
        lane.scratch = None  # before merging, which needs room of its own
    first, *rest = taken
    for lane in rest:
        first.survey.merge(lane.survey)
    return first.survey, sum(lane.skipped for lane in taken)


def _share(cuts: Iterator[Cut], lanes: Sequence[Callable[[Cut], int]]) -> Iterator[int]:
    """Give cuts to lanes in turn; yield the rows of each when it is done, in order."""
    if len(lanes) == 1:
        yield from map(lanes[0], cuts)
        return
    waiting: deque[Future[int]] = deque()
    with ExitStack() as stack:
        workers = [stack.enter_context(ThreadPoolExecutor(1)) for _ in lanes]
        try:
            for number, cut in enumerate(cuts):
                if len(waiting) >= IN_FLIGHT:
                    yield waiting.popleft().result()
                lane = number % len(lanes)
                waiting.append(workers[lane].submit(lanes[lane], cut))
            while waiting:
                yield waiting.popleft().result()
        finally:
            for job in waiting:
                job.cancel()


def _measurable(block: Block) -> bool:
    """Whether squares of the rows can be summed; NaN and infinity compare as false."""
    if not len(block):
        return True
    squares = block.squares
    if not (squares <= LONGEST**2).all():
        return False
    return not _short(block.rows, squares).size


def _short(rows: Array | RowsOnDevice, squares: Array) -> NDArray[np.intp]:
    """Return which rows are so short that their squares lose digits; zeros are not."""
    short = np.flatnonzero(squares < SHORTEST**2)
    return short[np.count_nonzero(rows[short], axis=1) > 0] if len(short) else short


def unmeasurable(cut: Cut) -> RowError:
    """Return the error that names the first row which is not made of usable numbers."""
    bad = np.flatnonzero(~np.isfinite(cut.rows).all(axis=1))
    if not len(bad):
        with np.errstate(over="ignore", under="ignore"):
            squares = cast(Array, np.vecdot(cut.rows, cut.rows))
            short = cast("list[int]", _short(cut.rows, squares.astype(np.float64)).tolist())
        if cut.rows.dtype == np.float64 and len(short):
            first = short[0]
            return RowError(
                f"expected rows of zeros or no shorter than {SHORTEST:g} in "
                f"{cut.places[first] or 'the rows'}, got a shorter one in row "
                f"{cut.ordinals[first]} (counted from 0){_called(cut, first)}",
                hint="multiply the vectors by a constant, or set such rows to zero",
                slug="row-too-small",
            )
        with np.errstate(over="ignore"):
            lengths = cast(Array, np.linalg.norm(cut.rows / LONGEST, axis=1))
        first = int(np.argmax(lengths > 1))
        return RowError(
            f"expected rows no longer than {LONGEST:g} in {cut.places[first] or 'the rows'}, "
            f"got a longer one in row {cut.ordinals[first]} (counted from 0)"
            f"{_called(cut, first)}",
            hint="divide the vectors by a constant; most measures do not depend on scale",
            slug="row-too-large",
        )
    first = bad.tolist()[0]
    what = "NaN" if np.isnan(cast(Array, cut.rows[first])).any() else "infinity"
    return RowError(
        f"expected finite numbers in {cut.places[first] or 'the rows'}, "
        f"got {what} in row {cut.ordinals[first]} (counted from 0){_called(cut, first)}",
        hint="--skip-bad drops and counts such rows",
        slug="row-not-finite",
    )


def _called(cut: Cut, row: int) -> str:
    """Return what the source calls a row, to be added to its number."""
    if cut.names is None:
        return ""
    (name,), (text,) = cut.names.of(np.array([row]))
    return f", {row_name(name, text, row)}" if name or text else ""

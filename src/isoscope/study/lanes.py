"""The one loop of the package: chunks of rows into the accumulators of a survey.

Two lanes take the blocks in turn, each with accumulators of its own and one thread of
linear algebra, and are merged at the end: the fetching and sorting of one block goes on
while another is multiplied. Which lane takes a block depends on its number alone, so that
the result does not depend on timing.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import cast

import numpy as np
from threadpoolctl import threadpool_limits

from isoscope.accumulate import ArrayBlock, Block, Groups, NamedRows
from isoscope.accumulate.survey import Kind, Place, Survey
from isoscope.errors import RowError
from isoscope.study.documents import Cut, whole_documents
from isoscope.study.warn import row_name
from isoscope.types import Array, Chunk

LANES = 2
IN_FLIGHT = 3  # blocks at once, so that memory does not depend on the length of the stream
BLOCK_BYTES = 25_165_824  # 8192 rows of 768 float32 numbers
LONGEST = 1e70  # of a billion such rows the sum of fourth powers does not overflow

Progress = Callable[[int], None]


def block_rows(width: int, itemsize: int = 4) -> int:
    """Return how many rows a block should have."""
    return min(max(BLOCK_BYTES // max(width * itemsize, 1), 256), 65_536)


@dataclass
class Lane:
    """One worker's survey, its scratch memory and the origin its blocks share."""

    survey: Survey = field(default_factory=Survey)
    origin: Array | None = None
    scratch: Array | None = None
    skipped: int = 0

    def take(self, cut: Cut, place: Place, kinds: Sequence[Kind], skip_bad: bool) -> int:
        """Show a cut to the accumulators; return how many rows it had."""
        rows = len(cut)
        block = self._block(cut, kinds)
        if not _measurable(block):
            kept = np.flatnonzero(np.isfinite(cut.rows).all(axis=1))
            if not skip_bad or len(kept) == rows:
                raise unmeasurable(cut)
            self._skip(cut, np.setdiff1d(np.arange(rows), kept), place, kinds)
            cut = cut.only(kept)
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
        return ArrayBlock(
            cut.rows,
            cut.keys,
            cut.positions,
            origin=self.origin,
            scratch=self._room(cut.rows),
            sketched=Groups in kinds,
            independent=cut.documents is None,
            names=cut.names,
        )

    def _room(self, rows: Array) -> Array:
        room = self.scratch
        if room is None or len(room) < len(rows) or room.dtype != rows.dtype:
            room = self.scratch = np.empty(rows.shape, dtype=rows.dtype)
        return room


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
) -> tuple[Survey, int]:
    """Read every chunk once; return what the accumulators know, and how many rows were bad.

    `start` holds accumulators to begin with: those of a second pass know what the first
    has found. The number of lanes changes the last bits.
    """
    taken = [Lane(_fresh(start)) for _ in range(lanes)]
    waiting: deque[Future[int]] = deque()
    done = 0

    def finish() -> None:
        nonlocal done
        done += waiting.popleft().result()
        if progress is not None:
            progress(done)

    with ExitStack() as stack:
        stack.enter_context(threadpool_limits(1))
        workers = [stack.enter_context(ThreadPoolExecutor(1)) for _ in taken]
        try:
            for number, cut in enumerate(whole_documents(chunks, seed=seed)):
                if len(waiting) >= IN_FLIGHT:
                    finish()
                lane = number % lanes
                job = workers[lane].submit(taken[lane].take, cut, place, kinds, skip_bad)
                waiting.append(job)
            while waiting:
                finish()
        finally:
            for job in waiting:
                job.cancel()
    for lane in taken:
        lane.scratch = None  # before merging, which needs room of its own
    first, *rest = taken
    for lane in rest:
        first.survey.merge(lane.survey)
    return first.survey, sum(lane.skipped for lane in taken)


def _fresh(start: Survey | None) -> Survey:
    if start is None:
        return Survey()
    meta, arrays = start.to_state()
    return Survey.from_state(meta, arrays)


def _measurable(block: Block) -> bool:
    """Whether squares of the rows can be summed; NaN and infinity compare as false."""
    return not len(block) or bool((block.squares <= LONGEST**2).all())


def unmeasurable(cut: Cut) -> RowError:
    """Return the error that names the first row which is not made of usable numbers."""
    bad = np.flatnonzero(~np.isfinite(cut.rows).all(axis=1))
    if not len(bad):
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
    is_nan = np.isnan(cast(Array, cut.rows[first]))
    what = "NaN" if is_nan.any() else "infinity"
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

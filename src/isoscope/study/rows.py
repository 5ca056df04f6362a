"""Rows of vectors that are there already: the spec of `measure`, and its worker."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from isoscope.accumulate import Adjacent, NamedRows, Tally
from isoscope.accumulate.survey import Kind, Place, Survey
from isoscope.display import Results
from isoscope.engine import Notify
from isoscope.engine.base import Scratch, Ticks
from isoscope.engine.plan import Plan, Unit
from isoscope.errors import TooFewRowsError
from isoscope.source import RowSource, open_source
from isoscope.source.bytes import of_file
from isoscope.source.row_source import Segment
from isoscope.store import Origin, new_origin, save
from isoscope.store.atomic import SpareFolder
from isoscope.store.state import State
from isoscope.study.lanes import LANES, KnownBy, Progress, block_rows, even_blocks, run
from isoscope.study.measure_choice import Computed, Reads, read_state
from isoscope.study.option import MOST_THREADS, about
from isoscope.study.passes import SiteKinds
from isoscope.study.reading import second_passes
from isoscope.study.run import Finished, Live, Runnable
from isoscope.study.wide_rows import check_cut, check_memory, fitting_measures
from isoscope.types import Chunk, Reading

ROWS: Place = ("rows", "all")
BLOCKS = 128  # of rows that a unit has at most: five seconds of width 768, on two cores
MOST_ROWS = 1 << 20  # of a unit


def unit_rows(rows: int | None, block: int) -> int:
    """Return how many rows a unit should have: whole blocks, and no unit much smaller.

    To end a unit and to begin the next costs what four blocks cost, whatever their width.

    >>> unit_rows(1_000_000, 8192), unit_rows(1_100_000, 8192), unit_rows(None, 24_576)
    (1048576, 557056, 1048576)
    """
    most = max(min(int(block * BLOCKS), MOST_ROWS), 1)
    if rows is None or rows <= most:
        return most
    even = -(-rows // -(-rows // most))
    return min(-(-even // block) * block, most)


class Rows(Unit, frozen=True, tag=True):
    """A range of rows that ends where a document ends."""

    segment: Segment | None = None  # None: all of a source that is not cut
    rows: int | None = None


class RowsPlan(Plan, frozen=True, kw_only=True):
    """The ranges of a source."""

    stages: tuple[tuple[Rows, ...], ...]

    def size(self, stage: int, unit: int) -> int | None:
        """Return the rows of a unit, where they are known."""
        return self.stages[stage][unit].rows


class MeasureSpec(Runnable[Results[Reading]], frozen=True, kw_only=True):
    """Measure a collection of vectors: an array, a tensor, a column of a frame, or a path.

    Returns readings, each with a 95 % interval and its warnings. With `output` a run folder
    is written as well; an unfinished one is resumed. `document` says which document each
    row is from: a column of the file, or a sequence with one entry per row.
    """

    command: ClassVar[str] = "measure"
    room: ClassVar[int] = 8 << 20  # of wide rows, one range at a time
    plans: ClassVar[type[Plan]] = RowsPlan
    worker_at: ClassVar[str] = "isoscope.study.rows:RowsWorker"
    reads_again: ClassVar[str] = "isoscope.study.saved_runs:read"

    vectors: Annotated[
        str | None,
        about(
            "A file (npy, npz, safetensors, parquet, arrow, jsonl or csv), a folder of them, "
            "or - for stdin.",
            "VECTORS",
            argument=True,
            path=True,
            live=True,
        ),
    ]
    reads: Reads = Reads()
    column: Annotated[
        str | None,
        about("The column, array or tensor with the vectors.", "C", local=True),
    ] = None
    document: Annotated[
        str | None,
        about(
            "The column with the document of each row; rows must be sorted by it.",
            "C",
            local=True,
            live=True,
        ),
    ] = None
    id: Annotated[
        str | None,
        about(
            "The column with the ids of the rows, by which warnings name them.",
            "C",
            local=True,
            live=True,
        ),
    ] = None
    text: Annotated[
        str | None,
        about(
            "The column with the texts of the rows, which warnings quote.",
            "C",
            local=True,
            live=True,
        ),
    ] = None
    name: Annotated[
        str | None,
        about("Name of the source.", "NAME", default="its file's name", local=True),
    ] = None
    by_order: Annotated[
        bool,
        about(
            "Identify rows by their order alone: runs of two models' vectors of the same texts "
            "are then paired row by row.",
            local=True,
        ),
    ] = False
    truncate_dim: Annotated[
        int | None, about("Cut vectors to their first N numbers.", "N", least=1)
    ] = None
    skip_bad: Annotated[bool, about("Drop and count rows that hold NaN or infinity.")] = False
    seed: Annotated[
        int, about("Seed of halves, groups and samples.", "N", least=0, most=2**63 - 1)
    ] = 0
    threads: Annotated[
        int,
        about(
            "Threads per unit; their number changes the last bits.",
            "N",
            least=1,
            most=MOST_THREADS,
            local=True,
        ),
    ] = LANES


class RowsWorker:
    """An open source of rows."""

    def __init__(self, spec: MeasureSpec, notify: Notify, live: Live) -> None:
        spec.reads.names()  # a misspelt name, before anything is read
        self.spec = spec
        named = any(live.get(role, spec.value(role)) is not None for role in ("id", "text"))
        self.source = open_source(
            live.get("vectors", spec.vectors),
            column=spec.column,
            document=live.get("document", spec.document),
            id=live.get("id", spec.id),
            text=live.get("text", spec.text),
            name=spec.name,
            skip_bad=spec.skip_bad,
        )
        self.width = check_cut(spec.truncate_dim, self.source)
        most = block_rows(self.width, self.source.itemsize)
        self._rows = even_blocks(self.source.rows, most)
        self.names, self._left_out = fitting_measures(spec.reads, self.width)
        wanted = {NamedRows: named, Adjacent: not self.source.has_documents}
        also = tuple(kind for kind, needed in wanted.items() if needed)
        kinds = SiteKinds(self.names, causes=False, also=also)
        self.first, self.second = kinds.first(ROWS[0]), kinds.second(ROWS[0])
        check_memory(kinds.of(ROWS[0]), self.source, self.width, self._rows, spec.threads)
        self._before: Survey | None = None

    def content(self) -> dict[str, str]:
        """Return fingerprints of the vectors, and of labels in files of their own."""
        from secrets import token_hex

        source = self.source
        found = {"name": source.name}
        # What is read from a stream cannot be read again, so that nothing of it is resumed.
        found["vectors"] = source.fingerprint if source.rereadable else f"stream {token_hex(8)}"
        for role in ("document", "id", "text"):
            value = self.spec.value(role)
            if isinstance(value, str) and value.endswith(".npy"):
                found[role] = of_file(Path(value).expanduser())
        return found

    def plan(self) -> RowsPlan:
        """Cut the source into ranges; a second stage where a measure needs one."""
        units = (Rows(None, self.source.rows),)
        if not self.source.live:
            segments = self.source.segments(unit_rows(self.source.rows, self._rows))
            units = tuple(Rows(each, _count(self.source, each)) for each in segments)
        again = bool(self.second) and self.source.rereadable
        return RowsPlan(stages=(units, units) if again else (units,), threads=self.spec.threads)

    def enter(self, plan: object, stage: int, before: State | None) -> None:
        """Turn to the first pass, or to the second with what the first has found."""
        self._before = None if before is None else before.survey_of(ROWS[0])
        if self._before is not None and ROWS not in self._before.held:
            raise _too_few(self.source, 0)

    def run(self, unit: object, scratch: Scratch, ticks: Ticks) -> Survey:
        """Sum the rows of one range."""
        assert isinstance(unit, Rows)
        return sum_rows(
            self._chunks(unit.segment),
            ROWS,
            self.first if self._before is None else self.second,
            before=self._before,
            seed=self.spec.seed,
            skip_bad=self.spec.skip_bad,
            progress=ticks.at,
            lanes=self.spec.threads,
            dropped=lambda: self.source.skipped,
            known_by=self._known_by,
        )

    def _chunks(self, segment: Segment | None) -> Iterator[Chunk]:
        """Yield the rows of a range, cut to the width that is measured."""
        for chunk in self.source.chunks(self._rows, segment):
            if self.width < self.source.width:
                chunk = replace(chunk, rows=np.ascontiguousarray(chunk.rows[:, : self.width]))
            yield chunk

    @property
    def _known_by(self) -> KnownBy:
        return "order" if self.spec.by_order else "content"

    def finish(self, done: Finished) -> Results[Reading]:
        """Return the readings, and write the run where there is a target."""
        tally = done.state.survey_of(ROWS[0]).held.get(ROWS, {}).get(Tally)
        seen = tally.count if isinstance(tally, Tally) else 0
        if seen < 2:
            raise _too_few(self.source, seen)
        options = self.spec.reads.options(documents=self.source.has_documents)

        def origin() -> Origin:
            settings = {**self.spec.settings(), **options, "measures": list(self.names)}
            if not self.source.has_documents:
                settings["known_by"] = self._known_by
            sources: list[dict[str, object]] = [
                {
                    "name": part.name,
                    "fingerprint": part.fingerprint,
                    "rows": done.state.seen.get(part.name, 0),
                    "dtype": part.dtype,
                    "width": part.width,
                    "file": Path(part.place).name if part.place else "",
                }
                for part in (self.source.parts or (self.source,))
            ]
            return new_origin(sources=sources, settings=settings, seed=self.spec.seed)

        return finish_readings(
            done, self.names, self.source.name, options, origin, left_out=self._left_out
        )


def finish_readings(
    done: Finished,
    names: Sequence[str],
    name: str,
    options: Computed,
    origin: Callable[[], Origin],
    *,
    order: Sequence[str] = (),
    remarks: tuple[str, ...] = (),
    left_out: Sequence[str] = (),
    flags: Mapping[str, object] | None = None,
    more: Sequence[Reading] = (),
) -> Results[Reading]:
    """Return the readings of all stages, and `more`; write the run where there is a target.

    Summaries of a second stage are laid over those of the first. The config of a run has the
    flags of the spec, replaced by those in `flags`.
    """
    with SpareFolder() as spare:
        state = done.state
        for second in done.found[1:]:
            assert isinstance(second, State)
            state = state.overlay(second, Path(spare))
        name = done.target.name if done.target is not None else name

        @cache
        def readings() -> Results[Reading]:
            found = read_state(state, names, name, options, order)
            found.extend(replace(each, run=name) for each in more)
            if done.missing:
                found = found.with_records(done.mark(found))
            found.remarks = remarks
            found.left_out = (*left_out, *found.left_out)
            return found

        if done.target is not None:
            config = {done.spec.command: done.spec.to_config(absolute=True) | dict(flags or {})}
            save(
                done.target,
                state,
                readings,
                origin(),
                config,
                done.overwrite,
                resume=True,
                id=done.id,
            )
        return readings()


def sum_rows(
    chunks: Iterable[Chunk],
    place: Place,
    kinds: Sequence[Kind],
    *,
    before: Survey | None = None,
    seed: int,
    skip_bad: bool = False,
    progress: Progress | None = None,
    lanes: int = LANES,
    dropped: Callable[[], int] | None = None,
    known_by: KnownBy = "source",
) -> Survey:
    """Return the summaries of rows: the one way rows become sums.

    Those of a second pass begin with what the first has found, in `before`.
    """
    counts: Counter[str] = Counter()

    def count_rows() -> Iterator[Chunk]:
        for chunk in chunks:
            counts[chunk.source] += len(chunk)
            yield chunk

    start = None
    if before is not None:
        start = Survey({place: second_passes(before.held[place], kinds)})
    survey, skipped = run(
        count_rows(),
        place,
        kinds,
        seed=seed,
        skip_bad=skip_bad,
        progress=progress,
        start=start,
        lanes=lanes,
        known_by=known_by,
    )
    if before is None:
        survey.seen = dict(counts)
        tally = survey.held.get(place, {}).get(Tally)
        if isinstance(tally, Tally):
            tally.skip(skipped + (dropped() if dropped is not None else 0))
    return survey


def _count(source: RowSource, segment: Segment) -> int | None:
    """Return the rows of a segment, where they are known."""
    parts = source.parts or (source,)
    ranges = [
        (start, parts[part].rows if stop is None else stop)
        for part, start, stop in segment.ranges()
    ]
    known = [end - start for start, end in ranges if end is not None]
    return sum(known) if len(known) == len(ranges) else None


def _too_few(source: RowSource, seen: int) -> TooFewRowsError:
    return TooFewRowsError(
        f"a measure needs at least 2 rows, got {seen} in {source.place or source.name}",
        hint="anisotropy compares rows with each other",
        slug="too-few-rows",
    )

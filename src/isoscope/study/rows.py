"""Rows of vectors that are there already: the spec of `measure`, and its worker."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Annotated, ClassVar

from isoscope.engine import Notify
from isoscope.engine.base import Scratch, Ticks
from isoscope.errors import TooFewRowsError
from isoscope.source.segment import Segment
from isoscope.store.state import State
from isoscope.study.lanes import LANES, Progress
from isoscope.study.option import about
from isoscope.study.plan import Plan, Unit
from isoscope.study.reads import Computed, Reads, read_state
from isoscope.study.run import Finished, Live, Runnable
from isoscope.study.spec import Spec
from isoscope.types import Chunk, Reading

if TYPE_CHECKING:
    from isoscope.accumulate.survey import Kind, Place, Survey
    from isoscope.display import Results
    from isoscope.source import RowSource

ROWS: "Place" = ("rows", "all")
BLOCKS = 16  # of rows that make a unit


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


class MeasureSpec(Runnable["Results[Reading]"], frozen=True, kw_only=True):
    """Measure a collection of vectors."""

    command: ClassVar[str] = "measure"
    plans: ClassVar[type[Plan]] = RowsPlan

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
    skip_bad: Annotated[bool, about("Drop and count rows that hold NaN or infinity.")] = False
    seed: Annotated[
        int, about("Seed of halves, groups and samples.", "N", least=0, most=2**63 - 1)
    ] = 0
    threads: Annotated[
        int,
        about(
            "Threads per unit; their number changes the last bits.", "N", least=1, local=True
        ),
    ] = LANES

    def open(self, notify: Notify, live: Live | None = None) -> "RowsWorker":
        """Open the source."""
        _ = notify
        return RowsWorker(self, live or {})


class RowsWorker:
    """An open source of rows."""

    def __init__(self, spec: MeasureSpec, live: Live) -> None:
        from isoscope.accumulate import NamedRows
        from isoscope.accumulate.survey import SECOND_PASS
        from isoscope.source import open_source
        from isoscope.study.reading import kinds_for

        self.spec = spec
        self.names = spec.reads.names()
        kinds = kinds_for(self.names)
        first = tuple(kind for kind in kinds if kind not in SECOND_PASS)
        named = any(live.get(role, spec.value(role)) is not None for role in ("id", "text"))
        self.first = (*first, NamedRows) if named else first
        self.second = tuple(kind for kind in kinds if kind in SECOND_PASS)
        self.source = open_source(
            live.get("vectors", spec.vectors),
            column=spec.column,
            document=live.get("document", spec.document),
            id=live.get("id", spec.id),
            text=live.get("text", spec.text),
            name=spec.name,
            skip_bad=spec.skip_bad,
        )
        self._stage = 0
        self._before: Survey | None = None

    def content(self) -> dict[str, str]:
        """Return fingerprints of the vectors, and of labels in files of their own."""
        from isoscope.source.bytes import of_file

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
            per_unit = self._rows * BLOCKS
            segments = self.source.segments(per_unit)
            units = tuple(Rows(each, _count(self.source, each)) for each in segments)
        again = bool(self.second) and self.source.rereadable
        stages = (units, units) if again else (units,)
        return RowsPlan(stages=stages, threads=self.spec.threads)

    def enter(self, plan: object, stage: int, before: State | None) -> None:
        """Turn to the first pass, or to the second with what the first has found."""
        _ = plan
        self._stage = stage
        self._before = None if before is None else before.survey_of(ROWS[0])
        if self._before is not None and ROWS not in self._before.held:
            raise _too_few(self.source, 0)

    def run(self, unit: object, scratch: Scratch, ticks: Ticks) -> "Survey":
        """Sum the rows of one range."""
        _ = scratch
        assert isinstance(unit, Rows)
        chunks = self.source.chunks(self._rows, unit.segment)
        if self._before is not None:
            return sum_again(
                chunks,
                ROWS,
                self.second,
                self._before,
                seed=self.spec.seed,
                skip_bad=self.spec.skip_bad,
                progress=ticks.at,
                lanes=self.spec.threads,
            )
        return sum_rows(
            chunks,
            ROWS,
            self.first,
            seed=self.spec.seed,
            skip_bad=self.spec.skip_bad,
            progress=ticks.at,
            lanes=self.spec.threads,
            dropped=lambda: self.source.skipped,
        )

    def finish(self, done: Finished) -> "Results[Reading]":
        """Return the readings, and write the run where there is a target."""
        from tempfile import TemporaryDirectory

        from isoscope.accumulate import Tally

        rows = done.state.survey_of(ROWS[0])
        tally = rows.held.get(ROWS, {}).get(Tally)
        seen = tally.count if isinstance(tally, Tally) else 0
        if seen < 2:
            raise _too_few(self.source, seen)
        with TemporaryDirectory(prefix="isoscope-") as spare:
            state = whole_state(done, Path(spare))
            name = done.target.name if done.target is not None else self.source.name
            options = self.spec.reads.options(documents=self.source.has_documents)
            readings = read_state(state, self.names, name, options)
            if done.target is not None:
                self._save(done, state, readings, options)
        return readings

    def _save(
        self,
        done: Finished,
        state: State,
        readings: "Results[Reading]",
        options: Computed,
    ) -> None:
        from isoscope.store import new_origin, save

        assert done.target is not None
        settings = {**self.spec.settings(), **options, "measures": list(self.names)}
        origin = new_origin(
            sources=_sources(self.source, state.seen), settings=settings, seed=self.spec.seed
        )
        config = {"measure": absolute(self.spec, ("vectors", "document", "id", "text"))}
        save(done.target, state, readings, origin, config, done.overwrite, resume=True)

    @property
    def _rows(self) -> int:
        from isoscope.study.lanes import block_rows

        return block_rows(self.source.width, self.source.itemsize)


def whole_state(done: Finished, spare: Path) -> State:
    """Return the summaries of the first stage, with those of the second where there is one."""
    if len(done.found) == 1:
        return done.state
    second = done.found[1]
    assert isinstance(second, State)
    return done.state.overlay(second, spare)


def sum_rows(
    chunks: Iterable[Chunk],
    place: "Place",
    kinds: Sequence["Kind"],
    *,
    seed: int,
    skip_bad: bool = False,
    progress: Progress | None = None,
    lanes: int = LANES,
    dropped: Callable[[], int] | None = None,
) -> "Survey":
    """Return the summaries of rows: the one way rows become sums."""
    from isoscope.accumulate import Tally
    from isoscope.study.lanes import run

    counts: Counter[str] = Counter()

    def count_rows() -> Iterator[Chunk]:
        for chunk in chunks:
            counts[chunk.source] += len(chunk)
            yield chunk

    survey, skipped = run(
        count_rows(), place, kinds, seed=seed, skip_bad=skip_bad, progress=progress, lanes=lanes
    )
    tally = survey.held.get(place, {}).get(Tally)
    if isinstance(tally, Tally):
        tally.skip(skipped + (dropped() if dropped is not None else 0))
    survey.seen = dict(counts)
    return survey


def sum_again(
    chunks: Iterable[Chunk],
    place: "Place",
    kinds: Sequence["Kind"],
    first: "Survey",
    *,
    seed: int,
    skip_bad: bool = False,
    progress: Progress | None = None,
    lanes: int = LANES,
) -> "Survey":
    """Return the summaries of a second pass over rows, given those of the first."""
    from isoscope.accumulate.survey import Survey
    from isoscope.study.lanes import run
    from isoscope.study.reading import second_passes

    start = Survey({place: second_passes(first.held[place], kinds)})
    survey, _ = run(
        chunks,
        place,
        kinds,
        seed=seed,
        skip_bad=skip_bad,
        progress=progress,
        start=start,
        lanes=lanes,
    )
    return survey


def _count(source: "RowSource", segment: Segment) -> int | None:
    """Return the rows of a segment, where they are known."""
    parts, total = source.parts or (source,), 0
    for part, start, stop in segment.ranges():
        end = parts[part].rows if stop is None else stop
        if end is None:
            return None
        total += end - start
    return total


def absolute(spec: Spec, names: tuple[str, ...]) -> dict[str, object]:
    """Return the flags of a spec with absolute paths, so that any folder will do."""
    flags = spec.to_config()
    for name in names:
        flag = spec.options()[name].flag
        value = flags.get(flag)
        if isinstance(value, str) and Path(value).exists():
            flags[flag] = str(Path(value).resolve())
    return flags


def _sources(source: "RowSource", rows: Mapping[str, int]) -> list[dict[str, object]]:
    """Return what identifies each file of a source."""
    return [
        {
            "name": part.name,
            "fingerprint": part.fingerprint,
            "rows": rows.get(part.name, 0),
            "dtype": part.dtype,
            "width": part.width,
            "file": Path(part.place).name if part.place else "",
        }
        for part in (source.parts or (source,))
    ]


def _too_few(source: "RowSource", seen: int) -> TooFewRowsError:
    return TooFewRowsError(
        f"a measure needs at least 2 rows, got {seen} in {source.place or source.name}",
        hint="anisotropy compares rows with each other",
        slug="too-few-rows",
    )

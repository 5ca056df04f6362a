"""The verbs of vectors that are there already: measure them, and a planted collection."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from isoscope.errors import TooFewRowsError
from isoscope.types import Chunk, Reading
from isoscope.verbs.answer import answered, checked_seed, chosen

if TYPE_CHECKING:
    from isoscope.report import Results
    from isoscope.source import Source
    from isoscope.survey import Survey

PLACE = ("rows", "all")
Progress = Callable[[int, int | None], None]  # rows done, rows in all where that is known


def measure(
    vectors: Any,
    *,
    measures: Sequence[str] | None = None,
    all: bool = False,
    output: str | os.PathLike[str] | None = None,
    column: str | None = None,
    document: Any = None,
    id: Any = None,
    text: Any = None,
    name: str | None = None,
    skip_bad: bool = False,
    as_published: bool = False,
    zeta: float = 0.2,
    seed: int = 0,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> "Results[Reading]":
    """Measure a collection of vectors: an array, a tensor, a column of a frame, or a path.

    Returns readings, each with a 95 % interval and its warnings. With `output` a run folder
    is written as well. `document` says which document each row is from: a column of the
    file, or a sequence with one entry a row.
    """
    from isoscope.source import open_source
    from isoscope.store import check_target, new_origin, save

    names = chosen(measures, all=all)
    if output is not None:
        check_target(output, overwrite)
    checked_seed(seed)
    source = open_source(
        vectors,
        column=column,
        document=document,
        id=id,
        text=text,
        name=name,
        skip_bad=skip_bad,
    )
    survey, rows = _surveyed(source, names, seed, skip_bad, progress)
    run = Path(output).name if output is not None else source.name
    options = {
        "zeta": zeta,
        "as_published": as_published,
        "documents": source.has_documents,
    }
    readings = answered(survey, names, run, options)
    if output is not None:
        settings = {
            "measures": list(names),
            **options,
            "skip_bad": skip_bad,
        }
        origin = new_origin(sources=_described(source, rows), settings=settings, seed=seed)
        given = {
            "vectors": spelt(vectors),
            "measure": list(measures) if measures else None,
            "all": all or None,
            "column": column,
            "document": spelt(document),
            "id": spelt(id),
            "text": spelt(text),
            "name": name,
            "skip-bad": skip_bad or None,
            "as-published": as_published or None,
            "zeta": zeta,
            "seed": seed,
        }
        config = {"measure": {key: value for key, value in given.items() if value is not None}}
        save(output, survey, readings, origin, config, overwrite)
    return readings


def _surveyed(
    source: "Source",
    names: Iterable[str],
    seed: int,
    skip_bad: bool,
    progress: Progress | None,
) -> tuple["Survey", Counter[str]]:
    """Read the source once, and again for measures that need what the first pass finds.

    Returns what was summed up, and how many rows each file had.
    """
    from isoscope.accumulate import Tally
    from isoscope.survey import SECOND_PASS, Survey, block_rows, kinds_for, run

    kinds = kinds_for(names)
    first = [kind for kind in kinds if kind not in SECOND_PASS]
    second = [kind for kind in kinds if kind in SECOND_PASS]
    rows = block_rows(source.width, source.itemsize)

    def tick(done: int) -> None:
        if progress is not None:
            progress(done, source.rows)

    counts: Counter[str] = Counter()

    def counted() -> Iterator[Chunk]:
        for chunk in source.chunks(rows):
            counts[chunk.source] += len(chunk)
            yield chunk

    survey, skipped = run(counted(), PLACE, first, seed=seed, skip_bad=skip_bad, progress=tick)
    tally = cast(Tally, survey.held.get(PLACE, {}).get(Tally, Tally(source.width)))
    tally.skip(skipped + source.skipped)
    seen = tally.count
    if seen < 2:
        raise TooFewRowsError(
            f"a measure needs at least 2 rows, got {seen} in {source.place or source.name}",
            hint="anisotropy is about how rows lie to each other",
            slug="too-few-rows",
        )
    if second and source.rereadable:
        start = Survey({PLACE: survey.second_kinds(PLACE, second)})
        again, _ = run(
            source.chunks(rows),
            PLACE,
            second,
            seed=seed,
            skip_bad=skip_bad,
            progress=tick,
            start=start,
        )
        survey.held[PLACE].update(again.held[PLACE])
    return survey, counts


def _described(source: "Source", rows: Counter[str]) -> list[dict[str, Any]]:
    """Return what identifies each file of a source."""
    return [
        {
            "name": part.name,
            "fingerprint": part.fingerprint,
            "rows": rows[part.name],
            "dtype": part.dtype,
            "width": part.width,
            "file": Path(part.place).name if part.place else "",
        }
        for part in (source.parts or (source,))
    ]


def spelt(value: Any) -> str | None:
    """Return a path or column as it goes into a config; arrays have no spelling.

    Paths are made absolute, so that a run can be measured again from any folder.
    """
    if not isinstance(value, str | os.PathLike):
        return None
    path = Path(value)
    return str(path.resolve()) if path.exists() else os.fspath(value)


def planted(*, progress: Progress | None = None) -> "Results[Reading]":
    """Measure a generated collection: 2,000 texts of ten vectors in a planted cone."""
    import numpy as np

    rng = np.random.default_rng(0)
    documents = np.repeat(np.arange(2000), 10)
    scale = np.arange(1, 129) ** -0.5
    own = rng.standard_normal((len(documents), 128))
    shared = rng.standard_normal((2000, 128))[documents]
    cone = np.full(128, 0.12)
    rows = (0.8 * own + 0.6 * shared) * scale + cone
    return measure(
        rows.astype(np.float32),
        document=documents,
        name="planted-cone",
        all=True,
        progress=progress,
    )

"""The library call behind each command: measure, merge, read, demo."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from isoscope.errors import ConfigError, TooFewRowsError
from isoscope.types import Chunk, Reading

if TYPE_CHECKING:
    from isoscope.report import Readings
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
) -> "Readings":
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
    if type(seed) is not int or not 0 <= seed < 2**63:
        raise ConfigError(
            f"expected a whole number from 0 to 2^63 - 1 as seed, got {seed!r}",
            hint="any whole number in that range will do; 0 is the default",
            slug="seed",
        )
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
    readings = _read(survey, names, run, options)
    if output is not None:
        settings = {
            "measures": list(names),
            **options,
            "skip_bad": skip_bad,
        }
        origin = new_origin(sources=_described(source, rows), settings=settings, seed=seed)
        given = {
            "vectors": _spelt(vectors),
            "measure": list(measures) if measures else None,
            "all": all or None,
            "column": column,
            "document": _spelt(document),
            "id": _spelt(id),
            "text": _spelt(text),
            "name": name,
            "skip-bad": skip_bad or None,
            "as-published": as_published or None,
            "zeta": zeta,
            "seed": seed,
        }
        config = {"measure": {key: value for key, value in given.items() if value is not None}}
        save(output, survey, readings, origin, config, overwrite)
    return readings


def chosen(measures: Sequence[str] | None, *, all: bool = False) -> tuple[str, ...]:
    """Return the names of the measures asked for: given ones, the default set, or all."""
    from isoscope.measure import MEASURES

    if measures is not None:
        if isinstance(measures, str):
            measures = [measures]
        for name in measures:
            _ = MEASURES[name]
        if not measures:
            raise _nothing({})
        return tuple(dict.fromkeys(measures))
    return tuple(record.name for record in MEASURES.values() if all or record.default)


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


def _read(
    survey: "Survey", names: Sequence[str], run: str, options: dict[str, Any]
) -> "Readings":
    """Return the readings; an error where not one of them could be computed."""
    from isoscope.report import Readings

    found = survey.read(names, run=run, **options)
    if not found:
        raise _nothing(survey.left_out)
    left_out = [f"{name}: {why}" for name, why in survey.left_out.items()]
    return Readings(found, left_out=left_out, isotropic=_isotropic(found, options))


def _nothing(left_out: dict[str, str]) -> TooFewRowsError:
    """Return the error for a call of which nothing could be computed."""
    problem = next(iter(left_out.values()), "a reading needs at least 1 measure, got 0")
    return TooFewRowsError(
        problem,
        hint="nothing that was asked for can be computed from these rows or this run; "
        "measure again with more rows, or with these measures",
        slug="nothing-to-read",
    )


def _isotropic(
    readings: Iterable[Reading], options: dict[str, Any]
) -> dict[tuple[str, int, int], float]:
    """Return what an isotropic cloud of the same size would read, where that is known.

    Of rows in documents only what does not depend on their number: a value for independent
    rows would mislead.
    """
    from isoscope.measure import MEASURES, level

    known: dict[tuple[str, int, int], float] = {}
    for each in readings:
        of = MEASURES[each.measure].isotropic if each.measure in MEASURES else None
        value = level(of, each.n, each.d, options)
        if value is not None and not (options.get("documents") and callable(of)):
            known[each.measure, each.n, each.d] = value
    return known


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


def _spelt(value: Any) -> str | None:
    """Return a path or column as it goes into a config; arrays have no spelling.

    Paths are made absolute, so that a run can be measured again from any folder.
    """
    if not isinstance(value, str | os.PathLike):
        return None
    path = Path(value)
    return str(path.resolve()) if path.exists() else os.fspath(value)


def merge(
    runs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    overwrite: bool = False,
) -> "Readings":
    """Add up runs that were measured apart, into a new run folder."""
    from isoscope.store import check_target, load, mergeable, save
    from isoscope.survey import Survey

    check_target(output, overwrite)
    if not runs:
        raise ConfigError(
            "a merge needs at least 1 run, got 0",
            hint="name the run folders to add up",
            slug="nothing-to-merge",
        )
    loaded = [load(run) for run in runs]
    origin = mergeable([run.origin for run in loaded])
    total = Survey()
    for run in loaded:
        total.merge(run.survey)
    settings = origin["settings"]
    readings = _read(total, settings["measures"], Path(output).name, _options(settings))
    config = {"merge": {"runs": [str(Path(run).resolve()) for run in runs]}}
    save(output, total, readings, origin, config, overwrite)
    return readings


def read(
    run: str | os.PathLike[str],
    *,
    measures: Sequence[str] | None = None,
    sites: Sequence[str] | None = None,
) -> "Readings":
    """Return the readings of a run folder; measures not yet read come from its summaries."""
    from isoscope.report import Readings
    from isoscope.store import load

    found = load(run)
    options = _options(found.settings)
    kept, left_out = list(found.readings), tuple(found.left_out)
    if measures is not None:
        names = chosen(measures)
        have = {each.measure for each in kept}
        fresh = [name for name in names if name not in have]
        if fresh:
            kept += found.survey.read(fresh, run=Path(run).name, **options)
        left_out = tuple(
            f"{name}: {why}" for name, why in found.survey.left_out.items() if fresh
        )
        kept = [
            each
            for name in names
            for each in kept
            if each.measure == name or each.measure in _companions(name)
        ]
        if not kept:
            raise _nothing(found.survey.left_out)
    if sites is not None:
        _known_sites(sites, kept)
        kept = [each for each in kept if each.site in sites]
    return Readings(kept, left_out=left_out, isotropic=_isotropic(kept, options))


def _options(settings: dict[str, Any]) -> dict[str, Any]:
    """Return what measures were computed with."""
    names = ("zeta", "as_published", "documents")
    return {name: settings[name] for name in names if name in settings}


def _companions(name: str) -> set[str]:
    """Return the readings that come along with a measure."""
    from isoscope.measure import MEASURES

    return {f"{name}-{suffix}" for suffix in MEASURES[name].beside}


def _known_sites(sites: Sequence[str], readings: Iterable[Reading]) -> None:
    from isoscope.registry import unknown

    known = dict.fromkeys(each.site for each in readings)
    for site in sites:
        if site not in known:
            raise unknown("site", site, known)


def demo(*, progress: Progress | None = None) -> "Readings":
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

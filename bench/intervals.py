"""How often readings hold the truth, with and without a warning, and how often nothing changed.

    python bench/intervals.py minilm     resampled token states of MiniLM
    python bench/intervals.py smollm     the same of SmolLM2
    python bench/intervals.py planted    topics, unequal lengths, few directions, tails, sinks
    python bench/intervals.py changed    two collections of one population: "changed" is false

Is resumed where it stopped, also within a cell; cells of older code are run again, the oldest
first and after those that never ran to the end. Results go
to bench/results/intervals-PART.json as they come, from which bench/intervals_page.py writes
tables of docs/statistics.md.
intervals-first-PART.json is the first run of these designs, of the code as it was when they
were written.
"""

import json
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from unittest.mock import patch

import numpy as np
from populations import PLANTED, Population, everywhere, real

import isoscope as iso
from isoscope.comparison.compare import changes
from isoscope.comparison.effect import NEGLIGIBLE
from isoscope.comparison.pairing import pairing
from isoscope.comparison.side import Side
from isoscope.measures import MEASURES
from isoscope.measures.view import FarNeighbours, Neighbours, Pairs
from isoscope.store import Run, load
from isoscope.study import measure_choice
from isoscope.study.lanes import run
from isoscope.study.reading import Spreads, kinds_for, read_survey
from isoscope.types import DEBIASED_TWINS, Change, Chunk, Reading

RESULTS = Path(__file__).parent / "results" / "intervals.json"
REPETITIONS = 400
CODE = 52  # the last decision (docs/adr) that moved what is counted here
CODES = {"changed": 48}  # of differences
CODES_OF_CELLS = {
    "smollm resid.14": 53
}  # the only site whose axes go below 1e-5 of the longest
FIRST_SEED = 9_300_000
PLACE = ("rows", "all")
# Distances between sampled rows have no value in a pool: a document drawn twice has none.
NAMES = tuple(
    each.name
    for each in MEASURES.values()
    if each.default and each.reads not in (Neighbours, FarNeighbours, Pairs)
)
REAL, OTHERS = (50, 100, 200), (10, 33, 100, 400)  # documents
EVERY = 20  # seconds between two savings
Work = Callable[[dict], Iterator[None]]  # adds one repetition after another to a record


def readings(rows: np.ndarray, documents: np.ndarray | None, name: str) -> dict[str, Reading]:
    """Return what `measure` reads of rows."""
    chunk = Chunk(rows, name, 0, documents=documents)
    survey, _ = run([chunk], PLACE, kinds_for(NAMES))
    return {each.measure: each for each in read_survey(survey, NAMES)[0]}


def truths(population: Population) -> dict[str, float]:
    """Return the values of a population: of its rows, every two of which are independent."""
    rows = population.rows()
    found = {name: each.value for name, each in readings(rows, None, "all").items()}
    for plain, debiased in DEBIASED_TWINS.items():
        if plain in found:
            found[debiased] = found[plain]
    mean = np.zeros(rows.shape[1])
    for part in np.array_split(rows.astype(np.float64), 50):
        norms = np.linalg.norm(part, axis=1, keepdims=True)
        mean += (part / np.where(norms > 0, norms, 1)).sum(axis=0)
    squares = (mean / len(rows)) ** 2
    found["mean-cosine"] = found["mean-cosine-cross"] = float(squares.sum())
    found["outlier-share"] = float(np.sort(squares)[-3:].sum() / squares.sum())
    return found


def kind_of(warning: str) -> str:
    """Return a warning without its numbers and names."""
    return re.sub(r"\s*\(.*?\)", "", re.sub(r"\d[\d.,]*", "N", warning)).partition(":")[0]


def covered(population: Population, documents: int, found: dict) -> Iterator[None]:
    """Count, measure by measure, how many intervals hold the truth, warned or not."""
    truth = truths(population)
    fresh = {"draws": 0, "held": 0, "warned": 0, "warned held": 0, "none": 0, "sum": 0.0}
    of = found.setdefault("of", {name: dict(fresh) for name in NAMES if name in truth})
    kinds = found.setdefault("warnings", {})
    salt = zlib.crc32(f"{population.name} {documents}".encode())
    for seed in range(FIRST_SEED + found["ran"], FIRST_SEED + REPETITIONS):
        rng = np.random.default_rng([seed, salt])
        for name, each in readings(*population.draw(documents, rng), f"draw {seed}").items():
            if name not in of:  # a companion
                continue
            of[name]["sum"] += each.value
            holds = each.low is not None and each.low <= truth[name] <= each.high
            if each.low is None:
                of[name]["none"] += 1
            elif each.warnings:
                of[name]["warned"] += 1
                of[name]["warned held"] += int(holds)
            else:
                of[name]["draws"] += 1
                of[name]["held"] += int(holds)
            for kind in {kind_of(text) for text in each.warnings}:
                fired, held = kinds.get(kind, (0, 0))
                kinds[kind] = [fired + 1, held + int(holds)]
        found["ran"] += 1
        yield
    for name, counts in of.items():
        counts["truth"] = round(truth[name], 6)
        counts["mean"] = round(counts.pop("sum") / REPETITIONS, 6)


# --- nothing has changed -------------------------------------------------------------------

Pair = Callable[[np.random.Generator], tuple[tuple, tuple]]


def independent(population: Population, sizes: tuple[int, int]) -> Pair:
    """Two collections of documents, drawn independently."""
    return lambda rng: (population.draw(sizes[0], rng), population.draw(sizes[1], rng))


def same_length(length: int) -> Callable[[int, np.random.Generator], np.ndarray]:
    """Documents all of one length."""
    return lambda documents, _: np.full(documents, length)


def few_and_many(rng: np.random.Generator) -> tuple[tuple, tuple]:
    """Forty documents of 200 rows and 400 of 20, which have as many rows."""
    long = replace(PLANTED[0], shared=everywhere(0.3), own=0.7, lengths=same_length(200))
    return long.draw(40, rng), replace(long, lengths=same_length(20)).draw(400, rng)


def two_models(rng: np.random.Generator) -> tuple[tuple, tuple]:
    """The same 100 documents seen by two models, whose rows correlate by nine tenths."""
    design = replace(PLANTED[0], shared=everywhere(0.3), own=0.7)
    lengths = design.lengths(100, rng)
    fixed = replace(design, lengths=lambda *_: lengths)
    common, *own = (fixed.draw(100, rng) for _ in range(3))
    mean = design.mean.astype(np.float32)

    def seen(other: np.ndarray) -> np.ndarray:
        off = np.sqrt(0.9) * (common[0] - mean) + np.sqrt(0.1) * (other - mean)
        return (mean + off).astype(np.float32)

    return (seen(own[0][0]), common[1]), (seen(own[1][0]), common[1])


def pairs() -> dict[str, Callable[[], Pair]]:
    """Return pairs of collections by name; real states are only computed where needed."""
    return {
        "40 documents of 200 rows, 400 of 20": lambda: few_and_many,
        "two models, the same 100 documents": lambda: two_models,
        "two directions, 100 and 100": lambda: independent(PLANTED[2], (100, 100)),
        "minilm resid.2, 100 and 100": lambda: independent(real("minilm")[1], (100, 100)),
        "minilm resid.2, 50 and 200": lambda: independent(real("minilm")[1], (50, 200)),
    }


def changed(name: str, draw: Pair, found: dict) -> Iterator[None]:
    """Count how many readings are said to have changed, with a caveat or without."""
    of = found.setdefault(
        "of", {each: {"pairs": 0, "changed": 0, "caveat": 0} for each in NAMES}
    )
    for seed in range(FIRST_SEED + found["ran"], FIRST_SEED + REPETITIONS):
        rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        with TemporaryDirectory(prefix="isoscope-") as folder, kept_spreads() as spreads:
            runs = [Path(folder) / "a", Path(folder) / "b"]
            for target, (rows, documents) in zip(runs, draw(rng), strict=True):
                iso.measure(
                    rows, document=documents, measures=NAMES, output=target, name="rows"
                )
            for each in single_questions(*map(load, runs), *spreads):
                of[each.measure]["pairs"] += 1
                kind = "caveat" if each.warnings else "changed"
                of[each.measure][kind] += int(each.verdict == "changed")
        found["ran"] += 1
        yield


@contextmanager
def kept_spreads() -> Iterator[list[Spreads]]:
    """Keep what the intervals of runs are made of while they are measured.

    `compare` would work it out anew from the sums of each run, in as much time again.
    """
    kept: list[Spreads] = []

    def read(survey, names, **how):
        kept.append({})
        return read_survey(survey, names, **{**how, "spreads": kept[-1]})

    with patch.object(measure_choice, "read_survey", read):
        yield kept


def single_questions(
    first: Run, second: Run, of_first: Spreads, of_second: Spreads
) -> list[Change]:
    """Return what `compare` says of each measure when asked for that one alone."""
    sides, how = (Side.of(first, "all"), Side.of(second, "all")), pairing(first, second)
    for side, spreads in zip(sides, (of_first, of_second), strict=True):
        for (site, _, measure), spread in spreads.items():
            side._spreads.setdefault(site, {})[measure] = spread
    keys = [key for key in sides[0].readings if key in sides[1].readings and key[2] in NAMES]
    return [changes(sides, [(key, key)], how, NEGLIGIBLE)[0] for key in keys]


# --- running -------------------------------------------------------------------------------


def cells(part: str) -> list[tuple[str, int, Work]]:
    """Return what is to be run: a name, a number of documents, and the work."""
    if part == "changed":
        return [
            (name, 0, lambda found, name=name, make=make: changed(name, make(), found))
            for name, make in pairs().items()
        ]
    populations, sizes = (PLANTED, OTHERS) if part == "planted" else (real(part), REAL)
    return [
        (each.name, size, lambda found, each=each, size=size: covered(each, size, found))
        for each in populations
        for size in sizes
    ]


def code_of(part: str, name: str) -> int:
    """Return the last decision that moved what is counted in a cell."""
    return CODES_OF_CELLS.get(name, CODES.get(part, CODE))


def same_cell(a: dict, b: dict) -> bool:
    """Whether two records are of one cell, of whatever code."""
    return (a["name"], a["documents"]) == (b["name"], b["documents"])


def save(path: Path, records: list[dict]) -> None:
    """Write records, a line each, all or nothing."""
    new = path.with_suffix(".part")
    new.write_text("[\n" + ",\n".join(json.dumps(each) for each in records) + "\n]\n")
    new.replace(path)


def main() -> None:
    """Run what has not been run; a record that is not finished says how far it is."""
    part, path = sys.argv[1], Path(sys.argv[2]) if len(sys.argv) > 2 else RESULTS
    path = path.with_stem(f"{path.stem}-{part}")
    records = json.loads(path.read_text()) if path.exists() else []
    known = {
        (each["name"], each["documents"]): each
        for each in records
        if each.get("code") == code_of(part, each["name"])
    }
    age = {
        (each["name"], each["documents"]): int(str(each.get("code", 1))[:2])
        for each in records
        if "ran" not in each
    }
    saved = monotonic()
    ordered = sorted(cells(part), key=lambda cell: (age.get(cell[:2], 0), -cell[1]))
    for name, size, work in ordered:
        found = known.get((name, size))
        if found is None:
            found = {"part": part, "name": name, "documents": size, "ran": 0}
            found["code"] = code_of(part, name)
            records.append(found)
        if "ran" not in found:
            continue
        for _ in work(found):
            if monotonic() - saved > EVERY:
                save(path, records)
                saved = monotonic()
        del found["ran"]
        records = [each for each in records if each is found or not same_cell(each, found)]
        save(path, records)
        print(name, size, flush=True)


if __name__ == "__main__":
    main()

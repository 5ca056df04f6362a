"""Damaged and hostile run folders: every command reads them or raises an error of ours.

Folders are runs of a measurement, a survey and a sweep, changed by a seeded mutator, mostly
with checksums that fit again. `make slow` opens 5,000 of them, a few always. A failure names
the number, so that `Mutant(number)` makes it again.
"""

import contextlib
import io
import json
import math
import os
import random
import shutil
import warnings
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace
from safetensors import safe_open
from safetensors.numpy import save as library_bytes

import isoscope
from isoscope.accumulate import (
    ACCUMULATORS,
    ArrayBlock,
    Directions,
    EarlyKeys,
    EarlyQueries,
    Groups,
    Keys,
    Overlap,
    Queries,
    QueryScores,
    Tally,
)
from isoscope.accumulate.heads import STATISTICS
from isoscope.accumulate.layout import LAYOUTS
from isoscope.accumulate.sums import SinkRows
from isoscope.accumulate.survey import SECOND_PASS, Survey
from isoscope.cli.main import app
from isoscope.errors import IsoscopeError, StoreError
from isoscope.hashing import named_documents
from isoscope.lab.sweep.results import read_sweep
from isoscope.store import load, save
from isoscope.store.readings import reading_schema
from isoscope.store.run import mark
from isoscope.store.schema import CONFIG, MANIFEST, READINGS, SERIES, STATE
from isoscope.store.state import META, State
from isoscope.study.measure_choice import head_measures, read_state

SCHEMA1 = Path(__file__).parent / "schema1"
SEEDS = ("vectors", "survey", "survey", "heads")
OF_EXPERIMENTS = (
    "sweep", "nursery", "series", "headseries", "drift", "ablate", "curvature", "types",
)  # fmt: skip
OF_HEADS = (Queries, Keys, EarlyQueries, EarlyKeys, QueryScores)
FRESH = ("mean-cosine-centred", "twonn", "partition", "isoscore-debiased", "alpha", "mev")
NUMBERS = [0, -1, 1, 2, 7, -4, 2**31, 2**40, 2**63 - 1, -(2**63), 0.5, 1e308, -1e-320]
ODD = [
    *NUMBERS, None, True, "", "x", "rows", "resid.99", "../../etc/passwd", "\x1b[31m", "\ud800",
    "é" * 300, [], {}, [[]], {"a": {"b": []}}, "nan", "all", "no-sink",
]  # fmt: skip
FLOATS = [math.nan, math.inf, -math.inf, 1e308, -1e308, 1e200, 1e-320, -1.0, 0.0, 2.0**53]


def write_seeds(folder):
    """Write a run of each kind: of vectors, of a model's tokens, and a sweep."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 4)) + np.eye(4)[0]
    names = [f"row {number}" for number in range(60)]
    isoscope.measure(rows, output=folder / "vectors", all=True, id=names)
    survey = tokens(rng)
    measures = ("mean-cosine", "isoscore", "self-similarity", "sentence-similarity")
    origin = load(SCHEMA1 / "survey").origin
    options = {"documents": True}
    readings = read_state(State(survey), measures, "survey", options)
    save(folder / "survey", survey, readings, origin, {"survey": {"model": "tiny"}})
    survey = heads(rng)
    readings = read_state(State(survey), head_measures(), "heads", options)
    settings = replace(origin.settings, measures=list(head_measures()))
    origin = replace(origin, kind="attention", settings=settings)
    save(folder / "heads", survey, readings, origin, {"attention": {"model": "tiny"}})
    shutil.copytree(SCHEMA1 / "sweep", folder / "sweep")


def heads(rng):
    """Return what is collected of a head and of its keys."""
    names, places = named_documents(np.repeat(np.arange(12), 5)), np.tile(np.arange(5), 12)
    kinds = {"head.0.0": (Queries, EarlyQueries), "k.0.0": (Keys, EarlyKeys)}
    survey = Survey()
    for site, own in kinds.items():
        block = ArrayBlock(
            rng.normal(size=(60, 4)) + 0.4, names, places.astype(np.uint64), folded=False
        )
        survey.update((site, "all"), [Tally, *own], block)
    scores = QueryScores(len(STATISTICS))
    scores.update(ArrayBlock(rng.random((60, scores.width)), names, places.astype(np.uint64)))
    survey.held["head.0.0", "all"][QueryScores] = scores
    return survey


def tokens(rng):
    """Return what a survey collects of two sites, with every kind of summary it has."""
    document, position = np.repeat(np.arange(12), 5), np.tile(np.arange(5), 12)
    token = rng.integers(0, 9, len(document))
    left_out = (*SECOND_PASS, Overlap, *OF_HEADS)
    kinds = [kind for kind in ACCUMULATORS if kind not in left_out]
    survey = Survey()
    for site in ("resid.0", "resid.1"):
        rows = rng.normal(size=(len(document), 4)) + 0.4
        rows[position == 0] *= 50
        for name, chosen in (("ordinary", position > 0), ("special-sink", position == 0)):
            block = ArrayBlock(
                rows[chosen].astype(np.float32),
                named_documents(document)[chosen],
                position[chosen].astype(np.uint64),
                tokens=token[chosen],
                frequency=token[chosen] % 5,
            )
            if name != "ordinary":
                block.sinks = SinkRows(np.full(12, 60.0), lambda row: ("<s>", f"<s> {row}"))
            survey.update((site, name), kinds, block)
            survey.meet((site, "all"), [block.by_document] * 2, width=4, folded=False)
    return survey


def write_experiments(folder):
    """Write a small run of each experiment that trains or follows a series."""
    small = {"width": 16, "layers": 2, "steps": 2, "batch": 4, "checkpoints": 1}
    isoscope.nursery_train(output=folder / "nursery", length=16, vocabulary=300, **small)
    few = {"tokens": 300, "length": 16}
    series = folder / "nursery"
    isoscope.trajectory(series, output=folder / "series", sites=("norm", "embed"), **few)
    isoscope.attention(series, output=folder / "headseries", **few)
    isoscope.drift(
        arch=["bert"], width=16, heads=2, tokens=8, initialisations=2, norms=[0, 10],
        output=folder / "drift",
    )  # fmt: skip
    isoscope.curvature(
        radii=[0.5, 0.1], bias=[0, 1], types=9, samples=40, draws=2, output=folder / "curvature"
    )
    isoscope.curvature(
        series / "step_0",
        output=folder / "types",
        occurrences=16,
        rank=2,
        tokens=1500,
        length=16,
    )
    isoscope.nursery_ablate(
        factors=["tie"], seeds=2, vocabulary=32, length=16, tokens=64, permutations=0,
        output=folder / "ablate", **small,
    )  # fmt: skip


class Mutant:
    """One changed run folder."""

    def __init__(self, number, folder, seeds=SEEDS):
        self.random = random.Random(number)
        self.seed = seeds[number % len(seeds)] if number % 10 else "sweep"
        self.path = folder / "run"
        shutil.rmtree(self.path, ignore_errors=True)
        shutil.copytree(folder / "seeds" / self.seed, self.path)
        self.manifest = json.loads((self.path / MANIFEST).read_bytes())
        well_formed = (
            *([self.change_arrays] * 3),
            *([self.change_header] * 2),
            self.flip_bits_of_arrays,
            self.change_manifest,
            self.change_readings,
        )
        if (self.path / SERIES).is_file():
            well_formed += (self.change_series,) * 4
        if self.seed in OF_EXPERIMENTS:  # their records are in the manifest
            well_formed += (self.change_manifest,) * 6
        if self.random.random() < 0.3:
            self.random.choice(well_formed)()
        self.random.choice((*well_formed, self.change_bytes, self.change_links))()

    def write_manifest(self):
        """Write the manifest, with checksums of what is there."""
        for name in (STATE, READINGS, SERIES):
            if isinstance(self.manifest.get("files"), dict) and (self.path / name).is_file():
                found = mark(self.path / name)
                self.manifest["files"][name] = {"bytes": found.bytes, "blake2b": found.blake2b}
        text = json.dumps(self.manifest)
        (self.path / MANIFEST).write_bytes(text.encode("utf-8", "surrogatepass"))

    def write_state(self, meta, arrays):
        (self.path / STATE).unlink()
        whole = {name: np.asarray(array, order="C") for name, array in arrays.items()}
        text = json.dumps(meta).encode("utf-8", "replace").decode()
        (self.path / STATE).write_bytes(library_bytes(whole, metadata={META: text}))
        self.write_manifest()

    def read_state(self):
        """Return the description and the arrays."""
        with safe_open(self.path / STATE, framework="numpy") as file:
            arrays = {name: file.get_tensor(name).copy() for name in file.keys()}  # noqa: SIM118
            return json.loads(file.metadata()[META]), arrays

    def change_arrays(self):
        meta, arrays = self.read_state()
        if not arrays:
            return
        name = self.random.choice(sorted(arrays))
        array = arrays[name]
        way = self.random.choice(("one", "all", "shape", "type", "gone", "swap", "scale"))
        if way == "gone":
            del arrays[name]
        elif way == "shape":
            shape = self.random.choice(((0,), (1,), (3, 2), (), (2, 0, 5), array.shape[::-1]))
            arrays[name] = np.resize(array, shape)
        elif way == "type":
            kind = self.random.choice(("float32", "int64", "uint8", "uint64", "int16"))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                arrays[name] = array.astype(kind)
        elif way == "swap":
            arrays[name] = arrays[self.random.choice(sorted(arrays))]
        elif array.size:
            self.set_values(array, way)
        self.write_state(meta, arrays)

    def set_values(self, array, way):
        where = ... if way != "one" else self.random.randrange(array.size)
        flat = array.reshape(-1)
        if array.dtype.kind == "f":
            value = self.random.choice(FLOATS)
            with np.errstate(all="ignore"):
                flat[where] = flat[where] * -3.7e5 if way == "scale" else value
        else:
            bits = np.iinfo(array.dtype)
            flat[where] = self.random.choice((bits.min, bits.max, 0, 1, 3))

    def flip_bits_of_arrays(self):
        meta, arrays = self.read_state()
        for name in self.random.sample(sorted(arrays), min(2, len(arrays))):
            raw = arrays[name].reshape(-1).view(np.uint8)
            for _ in range(self.random.choice((1, 1, 5)) if len(raw) else 0):
                raw[self.random.randrange(len(raw))] ^= 1 << self.random.randrange(8)
        self.write_state(meta, arrays)

    def change_header(self):
        meta, arrays = self.read_state()
        self.change_leaf(meta)
        self.write_state(meta, arrays)

    def change_manifest(self):
        self.change_leaf(self.manifest)
        self.write_manifest()

    def change_series(self):
        tree = msgspec.msgpack.decode((self.path / SERIES).read_bytes())
        self.change_leaf(tree)
        try:
            content = msgspec.msgpack.encode(tree)
        except (UnicodeError, OverflowError):
            return
        (self.path / SERIES).write_bytes(content)
        self.write_manifest()

    def change_leaf(self, tree):
        """Change, remove or add something anywhere in a tree of lists and dictionaries."""
        while True:
            keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
            if not keys:
                return
            key = self.random.choice(keys)
            inner = tree[key]
            if isinstance(inner, dict | list) and inner and self.random.random() < 0.85:
                tree = inner
                continue
            way = self.random.random()
            if way < 0.15:
                del tree[key]
            elif way < 0.25 and isinstance(tree, dict):
                tree[self.random.choice(("", "x", "\x1b", "width"))] = inner
            else:
                tree[key] = self.random.choice(ODD)
            return

    def change_readings(self):
        if not (self.path / READINGS).is_file():
            return
        table = pq.read_table(self.path / READINGS).to_pylist()
        for _ in range(3):
            if table:
                row = self.random.choice(table)
                name = self.random.choice(sorted(row))
                like = row[name]
                fitting = [each for each in (*ODD, *FLOATS) if type(each) is type(like)]
                row[name] = self.random.choice(fitting) if fitting else like
        try:
            new = pa.Table.from_pylist(table, schema=reading_schema())
        except (pa.ArrowException, UnicodeError, OverflowError):
            return
        (self.path / READINGS).unlink()
        pq.write_table(new, self.path / READINGS)
        self.write_manifest()

    def change_bytes(self):
        path = self.path / self.random.choice((STATE, READINGS, CONFIG, MANIFEST))
        if not path.is_file():
            return
        content = bytearray(path.read_bytes())
        for _ in range(self.random.choice((1, 1, 30))):
            content[self.random.randrange(len(content))] = self.random.randrange(256)
        if self.random.random() < 0.2:
            del content[self.random.randrange(len(content)) :]
        path.write_bytes(content)
        if path.name in (STATE, READINGS) and self.random.random() < 0.7:
            self.write_manifest()

    def change_links(self):
        path = self.path / self.random.choice((STATE, READINGS, CONFIG, MANIFEST))
        path.unlink(missing_ok=True)
        target = self.random.choice(("/etc/passwd", "/dev/zero", ".", path.name, "/nowhere"))
        how = self.random.random()
        if how < 0.6:
            path.symlink_to(target)
        elif how < 0.8:
            path.mkdir()
        elif how < 0.9:
            os.mkfifo(path)


def every_command(run, other, folder, pick):
    """Return what some commands make of a run."""
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    commands = [
        lambda: isoscope.read(run),
        lambda: isoscope.read(run, measures=FRESH),
        lambda: isoscope.read(run, measures=[pick.choice(FRESH)]),
        lambda: isoscope.read(run, measures=["mean-cosine", "effective-rank", "norm-spread"]),
        lambda: isoscope.explain(run),
        lambda: isoscope.dimensions(run),
        lambda: isoscope.compare(run, other),
        lambda: isoscope.check(run, fail_if=["mean-cosine > 2"]),
        lambda: isoscope.merge([run], out),
    ]
    return [pick.choice(commands), pick.choice(commands)]


def open_mutants(numbers, folder):
    failures = []
    (folder / "seeds").mkdir(exist_ok=True)
    write_seeds(folder / "seeds")
    for number in numbers:
        mutant = Mutant(number, folder)
        other = folder / "seeds" / mutant.seed
        commands = every_command(mutant.path, other, folder, mutant.random)
        for command in commands:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    found = command()
                    for each in found:
                        numbers_in = [getattr(each, n, None) for n in ("value", "low", "high")]
                        known = [x for x in numbers_in if isinstance(x, float)]
                        assert all(map(math.isfinite, known)), each
                    str(found)
            except IsoscopeError as error:
                str(error)
            except Exception as error:  # what a user would see as a traceback
                failures.append((number, type(error).__name__, str(error)[:200], error))
    return failures


def show_mutants(numbers, folder):
    """Return what a person would see as a traceback of commands that print or draw a run."""
    failures = []
    for number in numbers:
        mutant = Mutant(number, folder, (*OF_EXPERIMENTS, "survey", "heads", "vectors"))
        run, other = str(mutant.path), str(folder / "seeds" / mutant.seed)
        page = str(folder / "page.html")
        commands = [
            ["read", run],
            ["read", run, "--json"],
            ["report", run, "-o", page, "--overwrite"],
            ["report", run, other, "-o", page, "--overwrite"],
            ["compare", other, run],
            ["explain", run],
            ["check", run, "--fail-if", "mean-cosine > 2"],
        ]
        for words in mutant.random.sample(commands, 2):
            said = io.StringIO()
            try:
                with (
                    warnings.catch_warnings(),
                    contextlib.redirect_stdout(said),
                    contextlib.redirect_stderr(said),
                ):
                    warnings.simplefilter("error")
                    app(words)
            except SystemExit as end:
                if end.code not in (0, 1, 2, None):
                    failures.append((number, words[0], f"exit {end.code}", end))
            except Exception as error:
                text = f"{type(error).__name__}: {error}"[:200]
                failures.append((number, words[0], text, error))
    return failures


def as_text(failures):
    import traceback

    lines = []
    for number, name, text, error in failures:
        frames = traceback.extract_tb(error.__traceback__)
        inside = [each for each in frames if "isoscope" in each.filename][-1:]
        place = " ".join(f"{Path(each.filename).name}:{each.lineno}" for each in inside)
        lines.append(f"{number} {name} at {place}: {text}")
    return "\n".join(lines)


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("seeds")
    write_seeds(folder)
    return folder


@pytest.fixture(scope="module")
def experiments(tmp_path_factory):
    """Return a folder with a run of every kind: the experiments take some 15 seconds."""
    folder = tmp_path_factory.mktemp("experiments")
    (folder / "seeds").mkdir()
    write_seeds(folder / "seeds")
    write_experiments(folder / "seeds")
    return folder


def changed(seeds, folder, change):
    """Return a run of vectors or tokens after a change, with checksums that fit."""
    mutant = Mutant.__new__(Mutant)
    mutant.path = folder / "run"
    shutil.copytree(seeds, mutant.path)
    mutant.manifest = json.loads((mutant.path / MANIFEST).read_bytes())
    meta, arrays = mutant.read_state()
    change(meta, arrays)
    mutant.write_state(meta, arrays)
    return mutant.path


def set_widths(width):
    def change(meta, _):
        for place in meta["places"]:
            place["kinds"] = dict.fromkeys(place["kinds"], width)

    return change


def fill(name, value):
    def change(_, arrays):
        arrays[name].reshape(-1)[-1] = value

    return change


def retype(name, dtype):
    def change(_, arrays):
        arrays[name] = arrays[name].astype(dtype)

    return change


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (set_widths(-4), "expected a width of 1 to 1048576, got -4"),
        (set_widths(0), "expected a width of 1 to 1048576, got 0"),
        (set_widths(2**40), "expected a width of 1 to 1048576, got 1099511627776"),
        (set_widths(50_000), "'mean' has the shape"),
        (fill("0.Moments.scatter", np.nan), "'scatter' has NaN or infinity"),
        (fill("0.Moments.scatter", np.inf), "'scatter' has NaN or infinity"),
        (fill("0.Moments.quartic", 1e300), "'quartic' is too large"),
        (fill("0.Moments.rows", 7.0), "rows instead of 60"),
        (fill("0.Directions.units", np.nan), "'units' has NaN or infinity"),
        (fill("0.Directions.keys", 0), "'keys' is not in order"),
        (fill("0.Reservoir.rows", -np.inf), "'rows' has NaN or infinity"),
        (fill("0.Tally.independent", 3), "'independent' is neither true nor false"),
        (fill("0.Copies.times", -1), "'times' is negative"),
        (fill("0.Groups.count", 59), "adds up to 60 rows instead of 59"),
        (retype("0.Copies.times", np.int16), "'times' has the type int16"),
    ],
)
def test_a_state_that_no_rows_have_is_refused(seeds, tmp_path, change, problem):
    run = changed(seeds / "vectors", tmp_path, change)
    for command in (
        lambda: isoscope.read(run, measures=["alpha"]),
        lambda: isoscope.explain(run),
        lambda: isoscope.merge([run], tmp_path / "out"),
    ):
        with pytest.raises(StoreError) as caught:
            command()
        assert caught.value.slug == "store-damaged"
        assert problem in caught.value.problem


def test_a_run_of_every_kind_of_summary_is_read(seeds):
    kinds = {kind.__name__ for kind in ACCUMULATORS}
    there = set()
    for name in ("vectors", "survey", "heads"):
        run = load(seeds / name)
        there |= {kind.__name__ for here in run.survey.held.values() for kind in here}
        assert isoscope.explain(run.path)
    assert there == kinds == LAYOUTS.keys()


def test_long_documents_in_two_classes_of_rows_are_read(tmp_path):
    survey = Survey()
    names = named_documents(np.zeros(3000, dtype=int))
    rows = np.ones((3000, 2)) * 1e60
    block = ArrayBlock(rows, names, np.arange(3000, dtype=np.uint64))
    survey.update(("resid.0", "ordinary"), [Tally, Groups, Directions], block)
    survey.meet(("resid.0", "all"), [block.by_document] * 2, width=2, folded=False)
    origin = load(SCHEMA1 / "survey").origin
    save(tmp_path / "run", survey, [], origin, {})
    assert load(tmp_path / "run").survey.sites == ("resid.0",)


def test_documents_that_have_no_rows_correct_nothing(seeds, tmp_path):
    def change(_, arrays):
        for name in [each for each in arrays if each.endswith("Overlap.keys")]:
            arrays[name][-1] += 1

    run = changed(seeds / "survey", tmp_path, change)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = isoscope.read(run, measures=["norm-spread", "effective-rank"])
    assert all(math.isfinite(each.value) for each in found)


def test_a_size_of_a_reading_that_cannot_be_is_refused(seeds, tmp_path):
    for name, value in (("d", -4), ("d", 2**40), ("n", -1)):
        mutant = Mutant.__new__(Mutant)
        mutant.path = tmp_path / f"{name}{value}"
        shutil.copytree(seeds / "vectors", mutant.path)
        mutant.manifest = json.loads((mutant.path / MANIFEST).read_bytes())
        table = pq.read_table(mutant.path / READINGS).to_pylist()
        new = [{**row, name: value} for row in table]
        pq.write_table(
            pa.Table.from_pylist(new, schema=reading_schema()), mutant.path / READINGS
        )
        mutant.write_manifest()
        with pytest.raises(StoreError, match="expected numbers of rows and dimensions"):
            isoscope.read(mutant.path)


def test_a_sweep_without_a_reading_of_a_cell_is_refused(seeds, tmp_path):
    mutant = Mutant.__new__(Mutant)
    mutant.path = tmp_path / "run"
    shutil.copytree(seeds / "sweep", mutant.path)
    mutant.manifest = json.loads((mutant.path / MANIFEST).read_bytes())
    table = pq.read_table(mutant.path / READINGS).to_pylist()
    task = [each for each in table if each["site"] == "task"]
    table.remove(task[-1])
    pq.write_table(pa.Table.from_pylist(table, schema=reading_schema()), mutant.path / READINGS)
    mutant.write_manifest()
    with pytest.raises(StoreError, match="expected the cells of a sweep"):
        read_sweep(mutant.path)
    with pytest.raises(SystemExit) as end:
        app(["report", str(mutant.path), "-o", str(tmp_path / "page.html")])
    assert end.value.code == 0  # what can be shown is shown, and what is missing is said
    assert "expected the cells of a sweep" in (tmp_path / "page.html").read_text()


def test_some_damaged_runs_are_read_or_refused(tmp_path):
    failures = open_mutants(range(60), tmp_path)
    assert not failures, as_text(failures)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_damaged_runs_of_experiments_are_shown_or_refused(part, experiments):
    failures = show_mutants(range(10_000 + part * 250, 10_250 + part * 250), experiments)
    assert not failures, as_text(failures)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_five_thousand_damaged_runs_are_read_or_refused(part, tmp_path):
    failures = open_mutants(range(1000 + part * 500, 1500 + part * 500), tmp_path)
    assert not failures, as_text(failures)

"""Kills at random moments, driver or worker: the run is resumed and its bytes are the same."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from watching import children, eventually, lives

SOURCES = Path(__file__).parents[2] / "src"
BYTES = ("state.safetensors", "readings.parquet")
# Read by every process when it starts. Units of a test take no minute: nothing would be
# written before the end. And a process that is in a unit has a file that says so.
CUSTOM = """
import os
from pathlib import Path
from isoscope.engine import base, process
from isoscope.store.keepers import SummaryKeeper
SummaryKeeper.__init__.__kwdefaults__["patience"] = float(os.environ["TEST_PATIENCE"])
busy = Path(__file__).with_name(f"busy-{os.getpid()}")
begin, trim = base.Scratch.__init__, base.trim
def begin_unit(self, *arguments):
    busy.touch()
    begin(self, *arguments)
def end_unit():
    busy.unlink(missing_ok=True)
    trim()
base.Scratch.__init__ = begin_unit
base.trim = process.trim = end_unit  # called at the end of every unit
"""


class Command:
    """A command line that is started again and again, with one engine or the other."""

    def __init__(self, folder, *words):
        self.folder, self.words = folder, words
        self.target = folder / "run"
        (folder / "path").mkdir(parents=True)
        (folder / "path" / "sitecustomize.py").write_text(CUSTOM)
        process = self.start("here", 60.0)
        self.wait_for_units(process)
        began = time.monotonic()
        assert process.wait() == 0
        self.span = time.monotonic() - began  # from the first unit to the end
        self.expected = self.take()

    def start(self, engine, patience):
        where = ["--engine", engine, "--workers", "1" if engine == "here" else "2"]
        for left in (self.folder / "path").glob("busy-*"):
            left.unlink()
        where += ["--threads", "1", "-o", str(self.target), "--quiet"]
        paths = os.pathsep.join([str(self.folder / "path"), str(SOURCES)])
        return subprocess.Popen(
            [sys.executable, "-m", "isoscope", *self.words, *where],
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": paths, "TEST_PATIENCE": str(patience)},
        )

    def in_unit(self, *pids):
        """Return whether one of some processes is at a unit."""
        return any((self.folder / "path" / f"busy-{pid}").exists() for pid in pids)

    def wait_for_units(self, process):
        """Wait until a driver or one of its workers is at a unit, or all is done."""
        path = self.folder / "path"
        eventually(
            lambda: process.poll() is not None or any(path.glob("busy-*")),
            seconds=900,  # a loaded machine may take minutes to start a process
        )

    def take(self):
        """Return the bytes of a finished run, and remove it."""
        found = {name: (self.target / name).read_bytes() for name in BYTES}
        shutil.rmtree(self.target)
        return found


def survive(command, kills, seed):
    """Kill a command so many times; return how often a unit was under way."""
    rng = random.Random(seed)
    done = hits = attempts = 0
    gone = []
    while done < kills:
        engine = ("here", "pool")[attempts % 2]
        attempts += 1
        process = command.start(engine, rng.choice([0.0, 0.0, 0.1, 60.0]))
        if rng.random() < 0.8:  # else while it starts, opens, plans, or anywhere
            command.wait_for_units(process)
        time.sleep(rng.random() * command.span)
        workers = children(process.pid)
        hit_worker = workers and rng.random() < 0.5
        victim = rng.choice(workers) if hit_worker else process.pid
        under_way = command.in_unit(*([victim] if hit_worker else workers or [victim]))
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
                done += 1
                hits += under_way
        expected = (0,) if hit_worker else (0, -signal.SIGKILL)
        assert process.wait() in expected, (seed, done, engine)
        if (command.target / "run.json").exists():  # done: a worker was replaced, or too late
            assert command.take() == command.expected, (seed, done, engine)
        gone += workers
    assert command.start("pool", 0.0).wait() == 0
    assert command.take() == command.expected
    assert not any(map(lives, gone))
    return hits


@pytest.fixture
def vectors(tmp_path):
    folder = tmp_path / "rows"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(9):
        rows = rng.normal(size=(9000, 8)) + 0.4
        np.savetxt(folder / f"part-{number}.csv", rows, "%.4f", ",")
    return folder


@pytest.fixture
def corpus(tmp_path, texts):
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(f"{text} {texts[0]}" for text in texts * 5) + "\n")
    return path


@pytest.fixture
def task(tmp_path):
    path = tmp_path / "reviews.csv"
    words = ["the boats carry people", "a small fire in the hills", "seen from the road"]
    lines = [f"{words[n % 3]} {'river' if n % 2 else 'house'},{n % 2}" for n in range(60)]
    path.write_text("text,stars\n" + "\n".join(lines) + "\n")
    return path


@pytest.mark.slow
def test_vectors_survive_kills(tmp_path, vectors):
    # Two stages, and little to read off at the end: most kills hit a unit.
    measures = ["-m", "mean-cosine", "-m", "mean-cosine-centred"]
    command = Command(tmp_path / "kills", "measure", str(vectors), *measures)
    assert survive(command, 6, seed=1) >= 2


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_fifty_kills(tmp_path, vectors, corpus, task, tiny, capsys):
    survey = ["--all", "--unit", "200", "--sites", "resid.1,norm.mid,embed.weight"]
    sweep = ["--label", "stars", "--weights=-3,3", "--seeds", "2", "--steps", "8"]
    sweep += ["--length", "32", "--probe", "12"]
    commands = {
        "measure": (["measure", str(vectors), "--all"], 18),
        "survey": (["survey", str(tiny), str(corpus), *survey], 16),
        "sweep": (["sweep", str(tiny), str(task), *sweep], 16),
    }
    hits = {}
    for number, (name, (words, kills)) in enumerate(commands.items()):
        hits[name] = survive(Command(tmp_path / name, *words), kills, seed=10 + number)
    with capsys.disabled():
        print(f"\nof {sum(kills for _, kills in commands.values())} kills under way: {hits}")
    assert sum(hits.values()) >= 20

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
# Units of a test take no minute: nothing would be written before the end, or a kill.
IMPATIENT = """
import os
from isoscope.store.summaries import SummaryKeeper
SummaryKeeper.__init__.__kwdefaults__["patience"] = float(os.environ["TEST_PATIENCE"])
"""


class Command:
    """A command line that is started again and again, with one engine or the other."""

    def __init__(self, folder, *words):
        self.folder, self.words = folder, words
        self.target = folder / "run"
        (folder / "path").mkdir(parents=True)
        (folder / "path" / "sitecustomize.py").write_text(IMPATIENT)
        process = self.start("here", 60.0)
        eventually(lambda: self.is_under_way or process.poll() is not None)
        began = time.monotonic()
        assert process.wait() == 0
        self.span = time.monotonic() - began  # from the plan to the end
        self.expected = self.take()

    def start(self, engine, patience):
        where = ["--engine", engine, "--workers", "1" if engine == "here" else "2"]
        where += ["--threads", "1", "-o", str(self.target), "--quiet"]
        paths = os.pathsep.join([str(self.folder / "path"), str(SOURCES)])
        return subprocess.Popen(
            [sys.executable, "-m", "isoscope", *self.words, *where],
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": paths, "TEST_PATIENCE": str(patience)},
        )

    @property
    def is_under_way(self):
        return (self.target / "begun.json").exists()

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
        if rng.random() < 0.8:  # else before there is a plan, or anywhere
            eventually(lambda p=process: command.is_under_way or p.poll() is not None)
        time.sleep(rng.random() * command.span)
        workers = children(process.pid)
        hit_worker = workers and rng.random() < 0.5
        under_way = command.is_under_way
        victim = rng.choice(workers) if hit_worker else process.pid
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
                done += 1
                hits += under_way
        if process.wait() == 0:  # a worker was replaced, or it was done already
            assert command.take() == command.expected, (seed, done, engine)
        else:
            assert not hit_worker, "the death of a worker must not end the run"
        gone += workers
    if (command.target / "run.json").exists() or not command.target.exists():
        shutil.rmtree(command.target, ignore_errors=True)
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
        rows = rng.normal(size=(1200, 8)) + 0.4
        np.savetxt(folder / f"part-{number}.csv", rows, delimiter=",")
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


def test_vectors_survive_kills(tmp_path, vectors):
    command = Command(tmp_path / "kills", "measure", str(vectors), "--all")
    assert survive(command, 8, seed=1) >= 4


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
    assert sum(hits.values()) >= 25

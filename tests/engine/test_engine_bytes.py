"""Every engine gives the same bytes, and finishes what another one began."""

import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from test_torchrun import free_port
from watching import descendants, eventually

SOURCES = Path(__file__).parents[2] / "src"
BYTES = ("state.safetensors", "readings.parquet")
ENGINES = [
    ("here", 1),
    *((engine, workers) for engine in ("pool", "ray", "torchrun") for workers in (1, 2, 3)),
]


class Command:
    """A command that runs with any engine, in a folder of the same name."""

    def __init__(self, folder, *words):
        self.target, self.words = folder / "run", [str(each) for each in words]

    def start(self, engine, workers):
        where = ["--engine", engine, "--threads", "1", "-o", str(self.target), "--quiet"]
        begin = [sys.executable, "-m", "isoscope"]
        if engine == "torchrun":
            begin = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node"]
            begin += [str(workers), "--master-addr", "127.0.0.1"]
            begin += ["--master-port", str(free_port()), "-m", "isoscope"]
        else:
            where += ["--workers", str(workers)]
        return subprocess.Popen(
            [*begin, *self.words, *where],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(SOURCES), "OMP_NUM_THREADS": "1"},
        )

    def finish(self, engine, workers):
        """Run to the end; return the bytes, and remove the run."""
        job = self.start(engine, workers)
        _, err = job.communicate(timeout=600)
        assert job.returncode == 0, (engine, workers, err[-2000:])
        found = {name: (self.target / name).read_bytes() for name in BYTES}
        shutil.rmtree(self.target)
        return found

    def kill(self, engine, workers, seconds):
        """Begin, and kill the driver when a unit is kept or after some time."""
        job = self.start(engine, workers)
        end = time.monotonic() + seconds
        while job.poll() is None and time.monotonic() < end:
            if any(self.target.glob("stage-*/**/*-*")):
                break
            time.sleep(0.05)
        ours = descendants(job.pid)
        job.kill()
        job.communicate()
        if engine == "torchrun":  # its agent is what was killed: the ranks have to be too
            for pid in ours:
                os.kill(pid, signal.SIGKILL) if Path(f"/proc/{pid}").exists() else None
        eventually(lambda: not any(working(pid) for pid in ours), seconds=120)


def working(pid):
    """Return whether a process that could still write lives; agents of Ray take a minute."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text()
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z" and "Agent" not in words


@pytest.fixture
def vectors(tmp_path):
    folder = tmp_path / "rows"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(9):
        rows = rng.normal(size=(900 + number, 8)) + 0.4
        np.savetxt(folder / f"part-{number}.csv", rows, "%.4f", ",")
    return folder


@pytest.fixture
def corpus(tmp_path, texts):
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(texts) + "\n")
    return path


@pytest.fixture
def series(tmp_path, tiny):
    """Return a folder of three checkpoints that differ."""
    from safetensors.numpy import load_file, save_file

    for step in range(3):
        folder = tmp_path / "series" / f"step{step}"
        shutil.copytree(tiny, folder)
        path = folder / "model.safetensors"
        weights = load_file(path)
        save_file({n: a * np.float32(1 + step / 10) for n, a in weights.items()}, path)
    return tmp_path / "series"


@pytest.fixture
def reviews_file(tmp_path):
    path = tmp_path / "reviews.csv"
    words = ["the boats carry people", "a small fire in the hills", "seen from the road"]
    lines = [f"{words[n % 3]} {'river' if n % 2 else 'house'},{n % 2}" for n in range(60)]
    path.write_text("text,stars\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture(params=["measure", "survey", "sweep", "trajectory"])
def command(request, tmp_path):
    get, folder = request.getfixturevalue, tmp_path / "run-of"
    folder.mkdir()
    if request.param == "measure":
        return Command(folder, "measure", get("vectors"), "--all")
    if request.param == "survey":  # of real weights, with two passes
        words = [
            "--all",
            "--unit",
            "400",
            "--tokens",
            "2000",
            "--sites",
            "resid.1,embed.weight",
        ]
        return Command(folder, "survey", get("minilm"), get("corpus"), *words)
    if request.param == "sweep":
        words = ["--label", "stars", "--weights=-3,3", "--seeds", "1", "--steps", "2"]
        words += ["--length", "32", "--probe", "12"]
        return Command(folder, "sweep", get("tiny"), get("reviews_file"), *words)
    words = ["--sites", "resid.1,norm", "--no-theories"]
    return Command(folder, "trajectory", get("series"), get("corpus"), *words)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_engine_with_one_two_and_three_workers_gives_the_same_bytes(command):
    expected = command.finish("here", 1)
    assert len(expected["readings.parquet"]) > 1000
    engines = ENGINES[1:]
    if command.words[0] == "survey":  # real weights take minutes: one number for each engine
        engines = [("pool", 3), ("ray", 2), ("torchrun", 3)]
    for engine, workers in engines:
        assert command.finish(engine, workers) == expected, (engine, workers)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_begun_with_one_engine_killed_and_finished_with_another(command):
    expected = command.finish("here", 1)
    engines = ("here", "pool", "ray", "torchrun")
    pairs = list(itertools.permutations(engines, 2))
    if command.words[0] != "measure":  # models take longer: each engine first and second
        pairs = [*itertools.pairwise((*engines, "here"))]
    for first, second in pairs:
        command.kill(first, 1 if first == "here" else 2, seconds=60)
        if (command.target / "run.json").exists():  # the kill came too late
            shutil.rmtree(command.target)
        workers = 1 if second == "here" else 2
        assert command.finish(second, workers) == expected, (first, second)

"""A folder with vectors and runs in it, and two ways to run commands there."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from isoscope.cli.main import app

SOURCES = Path(__file__).parents[2] / "src"


def cone(seed, n=300, d=24):
    return (np.random.default_rng(seed).normal(size=(n, d)) + 1.0).astype(np.float32)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The folder commands run in."""
    folder = tmp_path / "place"
    folder.mkdir()
    monkeypatch.chdir(folder)
    np.save("vectors.npy", cone(0))
    np.save("other.npy", cone(1))
    return folder


@pytest.fixture
def isoscope(place):
    """Run a command in this process."""

    def run(*arguments, **options):
        words = [str(argument) for argument in arguments]
        return CliRunner().invoke(app, words, prog_name="isoscope", **options)

    return run


@pytest.fixture(scope="session")
def two_runs(tmp_path_factory):
    """The runs of both files of vectors, made once; copied where a test needs them."""
    folder = tmp_path_factory.mktemp("two")
    with chdir(folder):
        for seed, vectors, run in ((0, "vectors.npy", "runs/a"), (1, "other.npy", "runs/b")):
            np.save(vectors, cone(seed))
            words = ["measure", vectors, "-o", run, "-q"]
            done = CliRunner().invoke(app, words, prog_name="isoscope")
            assert done.exit_code == 0, done.stderr
    return folder / "runs"


@pytest.fixture
def runs(place, two_runs):
    """Two runs that can be merged."""
    shutil.copytree(two_runs, place / "runs")
    return place / "runs"


@pytest.fixture
def model(place, tiny):
    """The small random model, under the name that the examples have."""
    (place / "models").mkdir()
    (place / "models" / "minilm").symlink_to(tiny)
    return "models/minilm"


@pytest.fixture
def examples(place, tiny, speaker, tiny_run, texts, small_demo, checkpoints):
    """Everything that the examples of help pages speak of, besides vectors and their runs."""
    (place / "models").mkdir()
    (place / "models" / "minilm").symlink_to(tiny)
    (place / "models" / "gpt2").symlink_to(speaker)
    (place / "models" / "series").mkdir()
    for step in (0, 50, 90):
        (place / "models" / "series" / f"step_{step}").symlink_to(checkpoints / f"step_{step}")
    (place / "steps.csv").write_text("step,accuracy\n0,0.1\n50,0.3\n90,0.4\n")
    (place / "runs").mkdir(exist_ok=True)
    shutil.copytree(tiny_run, place / "runs" / "minilm")
    (place / "corpus.txt").write_text("\n".join(texts))
    stars = [5 if len(text.split()) > 15 else 1 for text in texts]
    (place / "labels.txt").write_text("".join(f"{each}\n" for each in stars))
    rows = [json.dumps({"text": t, "stars": s}) for t, s in zip(texts, stars, strict=True)]
    (place / "reviews.jsonl").write_text("\n".join(rows))
    lines = [f"{t}\t{s // 5}\n" for t, s in zip(texts, stars, strict=True)]
    (place / "sst2.tsv").write_text("".join(lines))
    return place


@pytest.fixture
def corpus(place, texts):
    """Forty documents as lines, as a column, and some of them as a folder of files."""
    (place / "corpus.txt").write_text("\n".join(texts) + "\n")
    rows = [json.dumps({"text": text, "key": n}) for n, text in enumerate(texts)]
    (place / "reviews.jsonl").write_text("\n".join(rows) + "\n")
    (place / "corpus").mkdir()
    for number, text in enumerate(texts[:6]):
        (place / "corpus" / f"{number}.txt").write_text(text + "\n")
    return "corpus.txt"


@pytest.fixture
def environment(tmp_path):
    """Variables with which `isoscope` in a shell is this checkout's."""
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    script = bin_ / "isoscope"
    script.write_text(
        f"#!{sys.executable}\nfrom isoscope.cli.main import main\n\nmain()\n", encoding="utf-8"
    )
    script.chmod(0o755)
    path = f"{bin_}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(SOURCES)}


@pytest.fixture
def shell(place, environment):
    """Run a line of shell in a process of its own."""

    def run(line, **options):
        return subprocess.run(
            ["bash", "-c", line],
            capture_output=True,
            text=True,
            env=environment,
            timeout=120,
            check=False,
            **options,
        )

    return run


@pytest.fixture
def typed(isoscope, shell):
    """Run a line as it is typed: in this process where it is one command, else in a shell.

    A process of its own takes seconds to load what this one has long loaded.
    """

    def run(line):
        words = shlex.split(line)
        if words[0] != "isoscope" or set(words) & {"|", ">", "<", "&&"}:
            return shell(f"set -o pipefail; {line}")
        done = isoscope(*words[1:])
        return subprocess.CompletedProcess(line, done.exit_code, done.stdout, done.stderr)

    return run

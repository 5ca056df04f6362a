"""Rows so wide that their covariance does not fit: said before, and measured without it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import isoscope
from isoscope.errors import ConfigError, SourceError
from isoscope.source import open_source
from isoscope.study.lanes import BLOCK_BYTES, block_rows
from isoscope.study.reading import kinds_for
from isoscope.study.wide_rows import WIDEST, needed_bytes

# Measures what it is told to, each with exit code, output and most memory, in 2 GB.
UNDER_A_LIMIT = """
import resource, sys
limit = 2 * 1024**3
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
from isoscope.cli.main import app
for arguments in sys.argv[1:]:
    try:
        app(["measure", *arguments.split()])
    except SystemExit as end:
        print("==", end.code, flush=True)
"""


def measure_in_two_gigabytes(*calls):
    """Return exit code and output of each call."""
    environ = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "100"}
    environ.pop("ISOSCOPE_MEMORY", None)
    done = subprocess.run(
        [sys.executable, "-c", UNDER_A_LIMIT, *calls],
        capture_output=True,
        text=True,
        env=environ,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done, done.stdout.split("== ")


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """Return files of few rows by their width."""
    folder = tmp_path_factory.mktemp("wide")
    rng = np.random.default_rng(0)
    paths = {}
    for width in (20_000, 200_000):
        paths[width] = folder / f"{width}.npy"
        np.save(paths[width], rng.random(size=(24, width), dtype=np.float32))
    return paths


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="limits need Linux")
def test_wide_rows_are_measured_in_two_gigabytes(wide):
    calls = [f"{path} --json" for path in wide.values()]
    calls += [f"{path} -m isoscore" for path in wide.values()]
    calls += [f"{wide[200_000]} -m isoscore --json --truncate-dim 64"]
    done, parts = measure_in_two_gigabytes(*calls)
    codes = [line for line in done.stdout.splitlines() if line.startswith("== ")]
    assert codes == ["== 0", "== 0", "== 2", "== 2", "== 0"], done.stderr
    assert all('"mean-cosine"' in part for part in parts[:2])
    for width, need in ((20_000, 41), (200_000, 417)):
        assert f"measuring rows of width {width} needs about {need}" in done.stderr
        assert f"rows of width {width} need about {need}" in done.stderr
    assert "-m mean-cosine" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_was_skipped_is_said_and_kept(tmp_path):
    rows = np.random.default_rng(1).normal(size=(40, WIDEST + 1)).astype(np.float32)
    found = isoscope.measure(rows, output=tmp_path / "run")
    assert {each.measure for each in found} >= {"mean-cosine", "norm-spread"}
    (why,) = [each for each in found.left_out if "isoscore" in each]
    assert "truncate-dim" in why
    assert why in isoscope.read(tmp_path / "run").left_out


def test_wide_rows_give_the_numbers_of_the_definition():
    rows = np.random.default_rng(2).normal(size=(30, WIDEST + 5)) + 0.2
    (value,) = [each.value for each in isoscope.measure(rows, measures=["mean-cosine"])]
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = units @ units.T
    assert value == pytest.approx((cosines.sum() - 30) / (30 * 29), abs=1e-12)


def test_named_measures_are_refused_before_anything_is_read(monkeypatch):
    monkeypatch.setenv("ISOSCOPE_MEMORY", str(2**30))
    rows = np.ones((4, 5000), dtype=np.float32)
    with pytest.raises(SourceError, match=r"width 5000 needs about \d\.\d GiB") as caught:
        isoscope.measure(rows, measures=["isoscore"])
    assert caught.value.slug == "rows-memory"
    assert "truncate_dim" in str(caught.value)


def test_cut_rows_are_those_of_a_narrow_file():
    rows = np.random.default_rng(3).normal(size=(64, 12)).astype(np.float32)
    cut = isoscope.measure(rows, truncate_dim=5, name="x")
    narrow = isoscope.measure(rows[:, :5].copy(), name="x")
    assert list(cut) == list(narrow)
    with pytest.raises(ConfigError, match="cannot cut vectors of width 12 to 13 numbers"):
        isoscope.measure(rows, truncate_dim=13)


def test_a_block_of_wide_rows_is_not_many_times_the_usual_one():
    for width in (768, 20_000, 200_000, 1 << 20):
        assert block_rows(width) * width * 4 <= max(2 * BLOCK_BYTES, 256 * 4 * 24_576)
    assert block_rows(768) == 8192
    assert block_rows(20_000) == 314


def test_needed_memory_grows_with_the_square_of_the_width():
    source = open_source(np.ones((50, 20_000), dtype=np.float32))

    def needed(*names):
        return needed_bytes(kinds_for(names), source, width=20_000, block=256, lanes=2)

    assert needed("mean-cosine") < 2**28
    assert needed("isoscore") > 40 * 2**30

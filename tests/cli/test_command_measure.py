"""isoscope measure, as a stranger uses it."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml

from isoscope.store import load
from isoscope.types import Reading


def readings(text):
    return [json.loads(line) for line in text.splitlines()]


def test_a_table_and_nothing_else_on_stdout(shell):
    done = shell("isoscope measure vectors.npy")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "mean-cosine" in done.stdout
    assert "95 % interval" in done.stdout
    assert "\x1b" not in done.stdout


def test_json_is_one_reading_a_line_with_the_keys_of_the_contract(shell):
    done = shell("isoscope measure vectors.npy --json")
    assert done.stderr == ""
    found = readings(done.stdout)
    assert all(tuple(reading) == Reading.__match_args__ for reading in found)
    assert {reading["site"] for reading in found} == {"rows"}
    assert {reading["variant"] for reading in found} == {"all"}
    assert {(reading["n"], reading["d"]) for reading in found} >= {(300, 24)}


def test_measures_are_named_with_m(isoscope):
    done = isoscope("measure", "vectors.npy", "-m", "isoscore", "-m", "mean-cosine", "--json")
    assert [each["measure"] for each in readings(done.stdout)] == ["isoscore", "mean-cosine"]


def test_all_adds_those_of_a_second_pass(isoscope):
    one = {r["measure"] for r in readings(isoscope("measure", "vectors.npy", "--json").stdout)}
    done = isoscope("measure", "vectors.npy", "--all", "--json")
    everything = {r["measure"] for r in readings(done.stdout)}
    assert everything >= one | {"mean-cosine-centred", "partition"}
    assert "partition" not in one


@pytest.mark.parametrize(
    ("flag", "start"),
    [("--csv", "run,site,variant"), ("--latex", "% "), ("--markdown", "run vectors")],
)
def test_the_other_formats(isoscope, flag, start):
    done = isoscope("measure", "vectors.npy", flag)
    assert done.exit_code == 0
    assert done.stdout.startswith(start)


def test_stdin(shell):
    from_file = shell("isoscope measure vectors.npy --json --name x")
    from_pipe = shell("cat vectors.npy | isoscope measure - --json --name x")
    assert from_pipe.returncode == 0, from_pipe.stderr
    assert [r["value"] for r in readings(from_pipe.stdout)] == pytest.approx(
        [r["value"] for r in readings(from_file.stdout)], rel=1e-9
    )


def test_a_run_folder_is_written_and_says_so_on_stderr(isoscope, place):
    done = isoscope("measure", "vectors.npy", "-o", "runs/a", "--json")
    assert done.exit_code == 0
    assert "saved runs/a" in done.stderr
    run = load(place / "runs" / "a")
    assert [each.value for each in run.readings] == [r["value"] for r in readings(done.stdout)]
    assert run.origin.kind == "vectors"
    (source,) = run.origin.sources
    assert (source.rows, source.width, source.dtype) == (300, 24, "float32")


def test_quiet_says_nothing(isoscope):
    assert isoscope("measure", "vectors.npy", "-o", "run", "--json", "-q").stderr == ""


def test_an_output_that_exists_is_refused_before_anything_is_read(isoscope, place):
    (place / "run").mkdir()
    (place / "run" / "thesis.tex").write_text("x")
    done = isoscope("measure", "no-such-file.npy", "-o", "run")
    assert done.exit_code == 2
    assert done.stderr.startswith("error: expected a new folder for the run")


def test_overwrite_replaces_a_run_and_nothing_else(isoscope, place):
    isoscope("measure", "vectors.npy", "-o", "run", "-q")
    before = load(place / "run").readings
    assert isoscope("measure", "other.npy", "-o", "run").exit_code == 2
    assert load(place / "run").readings == before
    assert isoscope("measure", "other.npy", "-o", "run", "--overwrite").exit_code == 0
    assert load(place / "run").readings != before
    (place / "mine").mkdir()
    (place / "mine" / "thesis.tex").write_text("x")
    assert isoscope("measure", "other.npy", "-o", "mine", "--overwrite").exit_code == 2
    assert (place / "mine" / "thesis.tex").read_text() == "x"


def numbers(text):
    return [(r["measure"], r["value"], r["low"], r["high"]) for r in readings(text)]


def test_the_config_of_a_run_measures_it_again(isoscope, place):
    flags = ("-m", "isoscore-star", "-m", "alpha", "--zeta", "0.3", "--seed", "5")
    first = isoscope("measure", "vectors.npy", *flags, "-o", "run", "--json")
    assert first.exit_code == 0, first.stderr
    again = isoscope("measure", "--config", "run/config.yaml", "--json")
    assert again.exit_code == 0, again.stderr
    assert numbers(again.stdout) == numbers(first.stdout)
    changed = isoscope("measure", "--config", "run/config.yaml", "--zeta", "0.6", "--json")
    assert numbers(changed.stdout) != numbers(first.stdout)
    copy = isoscope("measure", "--config", "run/config.yaml", "-o", "copies/run", "-q")
    assert copy.exit_code == 0, copy.stderr
    for name in ("state.safetensors", "readings.parquet", "config.yaml"):
        ours, theirs = place / "run" / name, place / "copies" / "run" / name
        assert ours.read_bytes() == theirs.read_bytes()


def test_a_study_in_a_file(isoscope, place):
    study = {"measure": {"vectors": "vectors.npy", "measure": ["isoscore"], "json": True}}
    (place / "study.yaml").write_text(yaml.safe_dump(study))
    done = isoscope("measure", "--config", "study.yaml")
    assert [each["measure"] for each in readings(done.stdout)] == ["isoscore"]


@pytest.mark.parametrize(
    ("make", "line", "problem"),
    [
        (None, "measure nothing.npy", "nothing.npy"),
        (None, "measure vectors.npy -m mean-cosin", "no measure is called 'mean-cosin'"),
        (np.full((9, 2), np.nan), "measure bad.npy", "NaN"),
        (np.zeros((1, 2)), "measure bad.npy", "1"),
        (np.zeros(3), "measure bad.npy", ""),
        (np.zeros((2, 2, 2)), "measure bad.npy", ""),
        (np.zeros((0, 2)), "measure bad.npy", ""),
        (np.array([[{}]]), "measure bad.npy", ""),
        (np.zeros((9, 2), complex), "measure bad.npy", ""),
    ],
)
def test_bad_input_is_one_clear_error(isoscope, make, line, problem):
    if make is not None:
        np.save("bad.npy", make)
    done = isoscope(*line.split())
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert problem in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 3


def big(rows=200_000, d=64):
    np.save("big.npy", np.random.default_rng(0).normal(size=(rows, d)).astype(np.float32))


def test_a_terminal_sees_progress_and_a_pipe_does_not(place, environment):
    big(300_000, 128)
    ours, theirs = pty.openpty()
    code = (
        "import sys, isoscope.cli.output as progress\n"
        "progress.PATIENCE = 0.0  # a fast machine would be done too soon\n"
        "sys.argv = ['isoscope', 'measure', 'big.npy', '--json']\n"
        "from isoscope.cli.main import main; main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**environment, "TERM": "xterm", "COLUMNS": "120"},
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # how a terminal says that the other side is gone
            break
        if not part:
            break
        seen += part
    out = process.communicate()[0]
    os.close(ours)
    assert process.returncode == 0
    assert b"rows/s" in seen
    assert b"of 300,000 rows" in seen
    assert b"\x1b" not in out
    assert len(readings(out.decode())) > 5


def test_a_kill_in_the_middle_leaves_the_old_run(isoscope, place, environment):
    assert isoscope("measure", "vectors.npy", "-o", "run", "-q").exit_code == 0
    before = load(place / "run")
    for wait in (0.3, 0.6, 0.9):
        process = subprocess.Popen(
            ["isoscope", "measure", "other.npy", "-o", "run", "--overwrite", "-q"],
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.wait()
        after = load(place / "run")
        assert after.survey
        names = {source.name for source in after.origin.sources}
        assert names in ({"vectors"}, {"other"}) or after.origin == before.origin


NOTHING_KEPT = "no unit was finished: nothing was kept"


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize(
    ("sent", "code", "said"),
    [(signal.SIGINT, 130, f"{NOTHING_KEPT}\nerror: interrupted\n"), (signal.SIGTERM, 143, "")],
)
def test_an_interrupt_leaves_nothing_behind(place, environment, sent, code, said):
    big(300_000, 128)
    process = subprocess.Popen(
        ["isoscope", "measure", "big.npy", "-o", "run"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    maps = Path(f"/proc/{process.pid}/maps")
    while process.poll() is None and "big.npy" not in maps.read_text():
        time.sleep(0.01)
    process.send_signal(sent)
    out, err = process.communicate(timeout=60)
    if process.returncode != 0:  # a fast machine may be done
        assert process.returncode == code
        assert err == said
        assert out == ""
        assert sorted(each.name for each in place.iterdir()) == [
            "big.npy", "other.npy", "vectors.npy",
        ]  # fmt: skip


def test_a_finished_run_is_shown_when_it_is_asked_for_again(isoscope):
    words = ("measure", "vectors.npy", "-o", "runs/again")
    first, saved = isoscope(*words), Path("runs/again/run.json")
    assert first.exit_code == 0
    before = saved.read_bytes()
    again = isoscope(*words)
    assert again.exit_code == 0
    assert again.stdout == first.stdout
    assert again.stderr.strip() == (
        "runs/again is finished: shown as it was saved; --overwrite does it again"
    )
    assert saved.read_bytes() == before
    for more in (("--seed", 1), ("-m", "isoscore"), ("--zeta", "0.3")):
        other = isoscope(*words, *more)
        assert other.exit_code == 2
        assert "store-exists" in other.stderr


def test_a_run_finished_without_some_units_is_not_shown_as_a_whole_one(isoscope):
    Path("parts").mkdir()
    for number in range(4):
        rows = np.random.default_rng(number).normal(size=(40, 3)) + 1
        rows[5, 1] = np.nan if number == 2 else 0
        np.savetxt(f"parts/{number}.csv", rows, "%.4f", ",")
    words = ("measure", "parts", "-o", "runs/part")
    first = isoscope(*words, "--allow-missing")
    assert first.exit_code == 0 and "1 of 4 units is missing" in first.stderr
    again = isoscope(*words)
    assert again.exit_code == 2 and again.stdout == ""
    assert "the run 'part' was finished without 1 of its units" in again.stderr
    assert "--overwrite" in again.stderr and "--allow-missing" in again.stderr
    shown = isoscope(*words, "--allow-missing")
    assert shown.exit_code == 0 and shown.stdout == first.stdout
    Path("parts/2.csv").write_text("1,2,3\n4,5,7\n")
    assert "store-exists" in isoscope(*words).stderr  # another input by now
    assert isoscope(*words, "--overwrite").exit_code == 0
    assert isoscope(*words).exit_code == 0


def test_a_finished_run_of_other_content_is_not_shown(isoscope):
    words = ("measure", "vectors.npy", "-o", "runs/other")
    assert isoscope(*words).exit_code == 0
    np.save("vectors.npy", np.load("vectors.npy") + 1)
    done = isoscope(*words)
    assert done.exit_code == 2
    assert "store-exists" in done.stderr

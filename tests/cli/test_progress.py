"""The line on the terminal while work goes on."""

from time import sleep

import pytest

from isoscope.cli import output as module
from isoscope.cli.output import Bar, note, progress, words
from isoscope.engine.tracker import Doing, Status


def test_nobody_watches_a_pipe(monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: False)
    with progress() as bar:
        assert bar is None


def test_quiet_is_quiet(monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress(quiet=True) as bar:
        assert bar is None


def test_short_work_shows_nothing(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress() as bar:
        bar.tick(5, 10)
        bar.tick(10, 10)
    assert capsys.readouterr().err == ""


def test_long_work_shows_rows_and_speed(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(module, "PATIENCE", -1.0)
    monkeypatch.setenv("TERM", "xterm")
    with progress() as bar:
        bar.tick(500, 1000)
        bar.tick(900, 1000)
    assert "rows/s" in capsys.readouterr().err


def test_units_failures_and_workers_are_shown_with_it(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(module, "PATIENCE", -1.0)
    monkeypatch.setenv("TERM", "xterm")
    doing = (Doing("worker 1", "unit 7", 350, 1000), Doing("worker 2", "unit 8"))
    with progress() as bar:
        bar.watch(Status(500, 1000, 7, 40, workers=doing))
        bar.tick(500, 1000)
        bar.watch(Status(500, 1000, 7, 40, failed=1, workers=doing))
    shown = " ".join(capsys.readouterr().err.split())
    assert "7 of 40 units" in shown and "worker 2: unit 8" in shown
    assert "unit 7, 35 %" in shown
    assert "1 try failed" in shown  # at once, without more rows


def test_what_an_earlier_run_has_done_does_not_count_as_speed():
    assert words(900, 1000, 10.0, earlier=800) == "900 of 1,000 rows, 10 rows/s, 10 s left"


def test_a_remark_stands_on_a_line_of_its_own_above_the_bar(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(module, "PATIENCE", -1.0)
    monkeypatch.setenv("TERM", "xterm")
    with progress() as bar:
        bar.tick(500, 1000)
        note("step 3: loss 5.7", quiet=False)
        bar.tick(900, 1000)
    before, _, after = capsys.readouterr().err.partition("step 3: loss 5.7")
    assert before.endswith("\x1b[2K")  # the line was erased
    assert after.startswith("\n")


def test_before_there_is_progress_it_says_what_is_done_first(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(module, "PATIENCE", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    with progress(first="loading model"):
        sleep(0.5)
    assert "loading model" in capsys.readouterr().err


def test_what_ends_before_it_is_long_says_nothing_later(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    with progress(first="loading model"):
        pass
    sleep(0.1)
    assert capsys.readouterr().err == ""


def test_a_second_pass_starts_its_clock_anew():
    bar = Bar()
    bar.tick(1000, 1000)
    first = bar.start
    bar.tick(10, 1000)
    assert bar.start > first
    bar.close()


def test_the_clock_starts_with_the_work_and_not_with_what_came_before():
    bar = Bar()
    made = bar.start
    bar.tick(0, 10)
    assert bar.start > made
    bar.close()


def test_the_clock_starts_when_the_first_worker_begins_and_only_then():
    bar = Bar()
    bar.tick(0, 10)
    before = bar.start
    bar.watch(Status(0, 10, 0, 4))  # a cluster is being started
    assert bar.start == before
    bar.watch(Status(0, 10, 0, 4, workers=(Doing("worker 1", "unit 0"),)))
    begun = bar.start
    assert begun > before
    bar.watch(Status(0, 10, 0, 4, workers=(Doing("worker 2", "unit 1"),)))
    assert bar.start == begun
    bar.close()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((0, 100, 0.0), "0 of 100 rows"),
        ((500, None, 2.0), "500 rows, 250 rows/s"),
        ((500, 1000, 2.0), "500 of 1,000 rows, 250 rows/s, 2 s left"),
        ((10, 100_000, 1.0), "10 of 100,000 rows, 10 rows/s, 2 h 46 min left"),
        ((2, 8, 4.0), "2 of 8 rows, 0.5 rows/s, 12 s left"),
        ((1000, 1000, 1.0), "1,000 rows read, computing"),
        ((2, 6, 200.0, "cells"), "2 of 6 cells, 1 min 40 s each, 6 min 40 s left"),
        ((6, 6, 600.0, "cells"), "6 cells done, computing"),
    ],
)
def test_it_says_how_far_how_fast_and_how_long(arguments, text):
    assert words(*arguments) == text

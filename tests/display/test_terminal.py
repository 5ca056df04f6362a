"""The table on a terminal."""

from io import StringIO

import pytest
from rich.console import Console

from isoscope.display import READINGS, Results
from isoscope.display.table import Column, Table
from isoscope.display.terminal import show


def printed(readings, width=100):
    out = StringIO()
    console = Console(file=out, width=width, force_terminal=False)
    for table in readings.tables:
        show(table, console)
    return out.getvalue()


def test_a_terminal_shows_values_intervals_warnings_and_what_was_left_out(readings):
    text = printed(readings)
    for part in ("0.4631", "[0.4610, 0.4652]", "1 2", "2  n < 10 d", "left out: twonn"):
        assert part in text


@pytest.mark.parametrize("width", [20, 60, 80])
def test_a_number_is_never_cut_however_narrow_the_terminal(readings, width):
    assert "[1.214e-05, 1.254e-05]" in printed(readings, width)


def test_markup_and_escapes_in_names_are_shown_not_obeyed(make):
    readings = Results(
        [make("isoscore", 0.5, run="[bold]x[/bold]\x1b[2J"), make("isoscore", 0.5)], READINGS
    )
    text = printed(readings, width=120)
    assert r"[bold]x[/bold]\x1b[2J" in text
    assert "\x1b[2J" not in text


def test_no_readings_say_so():
    assert printed(Results([], READINGS)).startswith("no readings")


def test_words_give_way_before_the_table_is_wider_than_the_terminal():
    rules = Column("rule", ("isoscore-debiased@resid.* < 0.99999x", "x"), words=True, fold=14)
    columns = (rules, Column("verdict", ("could not run", "holds"), words=True, fold=8))
    numbers = Column("95 % interval", ("[0.000737, 0.000878]",) * 2)
    printed_lines = {}
    for width in (30, 50, 80):
        console = Console(width=width, file=StringIO())
        show(Table("", (*columns, numbers)), console)
        printed_lines[width] = console.file.getvalue().splitlines()
    assert max(map(len, printed_lines[80])) <= 80
    assert max(map(len, printed_lines[50])) <= 50
    assert all(
        any("[0.000737, 0.000878]" in line for line in x) for x in printed_lines.values()
    )

"""What goes to stdout, what to stderr."""

import re
from dataclasses import replace

import pytest

from isoscope.cli.output import note, show
from isoscope.display import READINGS as LAID_OUT
from isoscope.display import RecordLayout, Results
from isoscope.display.frames import Field
from isoscope.display.table import Column, Table
from isoscope.types import Reading

ONE = Reading("a", "rows", "all", "", None, "isoscore", 0.5, 0.4, 0.6, 9, 3)
READINGS = Results([ONE], LAID_OUT, left_out=["twonn: needs at least 9 rows"])


@pytest.mark.parametrize("style", ["json", "csv"])
def test_data_is_alone_on_stdout(capsys, style):
    show(READINGS, style)
    out, err = capsys.readouterr()
    assert out == getattr(READINGS, f"to_{style}")()
    assert err == "skipped: twonn: needs at least 9 rows\n"


@pytest.mark.parametrize("style", ["latex", "markdown", ""])
def test_tables_say_themselves_what_was_excluded(capsys, style):
    show(READINGS, style)
    out, err = capsys.readouterr()
    assert "twonn" in out
    assert err == ""


def test_a_terminal_gets_a_table(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    show(READINGS, "")
    assert "[0.40, 0.60]" in capsys.readouterr().out


def tables(found):
    column = Column("n", tuple(str(each) for each in found))
    return (
        Table("odd", (column,), found.remarks),
        Table("even", (column,)),
        Table("", (column,)),
    )


def record(each):
    return {"n": each}


LAYOUT = RecordLayout("numbers", tables, record, (Field("n", "integer"),))
NUMBERS = Results([1, 2], LAYOUT, remarks=["mind"], left_out=["3: too large"])


def test_tables_of_records_are_set_apart(capsys):
    show(NUMBERS, "")
    out, err = capsys.readouterr()
    assert out == "odd\n\nn\n1\n2\n\n1  mind\n\neven\n\nn\n1\n2\n\nn\n1\n2\n"
    assert err == ""


def test_tables_of_records_are_set_apart_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    show(NUMBERS, "")
    out = re.sub(r"\x1b\[\d+m", "", capsys.readouterr().out)
    lines = [line.strip() for line in out.splitlines()]
    first = ["odd", "n", "1", "2", "", "1  mind", ""]
    assert lines == [*first, "even", "n", "1", "2", "", "n", "1", "2", ""]


def test_a_table_with_notes_is_set_apart_on_a_terminal_too(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    column = (Column("n", ("1",)),)
    tables = (Table("one", column, notes=("mind",)), Table("two", column))
    layout = replace(NUMBERS.layout, tables=lambda _found: tables, overview=None)
    show(Results([1], layout), "")
    out = re.sub(r"\x1b\[\d+m", "", capsys.readouterr().out)
    lines = [line.strip() for line in out.splitlines()]
    assert lines == ["one", "n", "1", "", "mind", "", "two", "n", "1", ""]


@pytest.mark.parametrize("quiet", [True, False])
def test_records_as_data_have_their_remarks_beside_them(capsys, quiet):
    show(NUMBERS, "json", quiet=quiet)
    out, err = capsys.readouterr()
    assert out == '{"n": 1}\n{"n": 2}\n'
    assert err == ("" if quiet else "note: mind\nskipped: 3: too large\n")


def test_remarks_are_quiet_on_request_and_harmless_always(capsys):
    note("saved \x1b[2J", quiet=False)
    note("saved", quiet=True)
    assert capsys.readouterr().err == "saved \\x1b[2J\n"

"""What goes to stdout, what to stderr."""

import pytest

from isoscope.cli.output import chosen, note, show
from isoscope.errors import ConfigError
from isoscope.report import Readings
from isoscope.types import Reading

ONE = Reading("a", "rows", "all", "", None, "isoscore", 0.5, 0.4, 0.6, 9, 3)
READINGS = Readings([ONE], left_out=["twonn: needs at least 9 rows"])


def test_one_format_is_chosen_and_two_are_refused():
    assert chosen(json=False, csv=False) == ""
    assert chosen(json=False, csv=True) == "csv"
    with pytest.raises(ConfigError, match="cannot print --json with --csv"):
        chosen(json=True, csv=True)


@pytest.mark.parametrize("style", ["json", "csv"])
def test_data_is_alone_on_stdout(capsys, style):
    show(READINGS, style)
    out, err = capsys.readouterr()
    assert out == getattr(READINGS, f"to_{style}")()
    assert err == "left out: twonn: needs at least 9 rows\n"


@pytest.mark.parametrize("style", ["latex", "markdown", ""])
def test_tables_say_themselves_what_was_left_out(capsys, style):
    show(READINGS, style)
    out, err = capsys.readouterr()
    assert "twonn" in out
    assert err == ""


def test_a_terminal_gets_a_table(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    show(READINGS, "")
    assert "[0.40, 0.60]" in capsys.readouterr().out


def test_remarks_are_quiet_when_asked_and_harmless_always(capsys):
    note("saved \x1b[2J", quiet=False)
    note("saved", quiet=True)
    assert capsys.readouterr().err == "saved \\x1b[2J\n"

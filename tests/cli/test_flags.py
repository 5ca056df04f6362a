"""Flags that several commands share."""

import click
import pytest
from click.testing import CliRunner

from isoscope.cli.flags import FORMATS, as_json, formats
from isoscope.cli.main import Commands

app = Commands("paints")


@app.command("paint")
@click.argument("what")
@formats
@click.option("--thin", is_flag=True)
def paint(what: str, style: str, thin: bool) -> None:
    """Paint something."""
    click.echo(f"{what} {style!r} {thin}")


@app.command("sand")
@as_json
def sand(style: str) -> None:
    click.echo(f"sanded {style!r}")


def test_formats_stand_where_the_command_has_them():
    names = [parameter.name for parameter in paint.params]
    assert names == ["what", *FORMATS, "thin"]


@pytest.mark.parametrize("style", ["", *FORMATS])
def test_the_command_gets_the_one_that_was_chosen(style):
    done = CliRunner().invoke(app, ["paint", "door", *([f"--{style}"] if style else [])])
    assert done.stdout == f"door {style!r} False\n"


@pytest.mark.parametrize("style", ["", "json"])
def test_a_command_may_have_one_of_them_alone(style):
    done = CliRunner().invoke(app, ["sand", *([f"--{style}"] if style else [])])
    assert done.stdout == f"sanded {style!r}\n"


def test_two_are_refused_before_the_command_is_called():
    done = CliRunner().invoke(app, ["paint", "door", "--csv", "--latex"])
    assert done.exit_code == 2 and done.stdout == ""
    assert done.stderr.startswith("error: cannot print --csv with --latex")

"""Flags that several commands share."""

import inspect

import pytest
import typer
from typer.testing import CliRunner

from isoscope.cli.flags import FORMATS, formats
from isoscope.cli.main import Commands

app = typer.Typer(cls=Commands)


@app.command("paint")
@formats
def paint(what: str, coats: int = 1, style: str = "", thin: bool = False) -> None:
    """Paint something."""
    typer.echo(f"{what} {coats} {style!r} {thin}")


@app.command("sand")
def sand() -> None:
    typer.echo("sanded")


def test_formats_stand_where_the_style_stood():
    assert list(inspect.signature(paint).parameters) == [
        "what", "coats", *(f"as_{name}" for name in FORMATS), "thin"
    ]  # fmt: skip
    assert paint.__doc__ == "Paint something."


@pytest.mark.parametrize("style", ["", *FORMATS])
def test_the_command_gets_the_one_that_was_chosen(style):
    done = CliRunner().invoke(app, ["paint", "door", *([f"--{style}"] if style else [])])
    assert done.stdout == f"door 1 {style!r} False\n"


def test_two_are_refused_before_the_command_is_called():
    done = CliRunner().invoke(app, ["paint", "door", "--csv", "--latex"])
    assert done.exit_code == 2 and done.stdout == ""
    assert done.stderr.startswith("error: cannot print --csv with --latex")

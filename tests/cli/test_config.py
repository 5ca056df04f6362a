"""Flags out of a file."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from isoscope.cli.config import config_file
from isoscope.cli.main import Commands

app = Commands("paints")


@app.command("paint")
@click.argument("what", metavar="WHAT")
@click.option("-c", "--colour", "colours", multiple=True)
@click.option("--coats", type=click.IntRange(min=1), default=1)
@click.option("--thin", type=float, default=0.5)
@click.option("--in-a-hurry", is_flag=True)
@click.option("--name")
@config_file
def paint(what, colours, coats, thin, in_a_hurry, name) -> None:
    click.echo(f"{what} {list(colours) or None} {coats} {thin} {in_a_hurry} {name}")


@app.command("sand")
def sand() -> None:
    click.echo("sanded")


@pytest.fixture
def painted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(content, *arguments):
        Path("c.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
        return CliRunner().invoke(app, ["paint", *arguments, "--config", "c.yaml"])

    return run


def test_a_file_gives_arguments_and_flags(painted):
    done = painted(
        "what: door\ncolour: [red, blue]\ncoats: 2\nthin: 0.25\nin-a-hurry: true\nname: 7"
    )
    assert done.stdout == "door ['red', 'blue'] 2 0.25 True 7\n"


def test_underscores_do_as_well_as_hyphens_and_one_value_as_a_list(painted):
    assert painted("what: door\nin_a_hurry: true\ncolour: red").stdout == (
        "door ['red'] 1 0.5 True None\n"
    )


def test_the_command_line_wins(painted):
    done = painted("what: door\ncoats: 2\ncolour: [red]", "wall", "--coats", "3", "-c", "green")
    assert done.stdout == "wall ['green'] 3 0.5 False None\n"


def test_flags_may_stand_under_the_name_of_the_command(painted):
    done = painted("paint:\n  what: door\n  coats: 2\nsand:\n  grain: 80\n")
    assert done.stdout == "door None 2 0.5 False None\n"


def test_flags_at_the_top_serve_unless_the_command_has_its_own(painted):
    assert painted("coats: 2\nthin: 1\npaint:\n  what: door\n  coats: 3").stdout == (
        "door None 3 1.0 False None\n"
    )


@pytest.mark.parametrize("content", ["", "name:", "# nothing"])
def test_what_is_empty_is_not_given(painted, content):
    assert painted(content, "door").stdout == "door None 1 0.5 False None\n"


def test_what_is_still_missing_is_reported(painted):
    done = painted("coats: 2")
    assert done.exit_code == 2
    assert "missing argument 'WHAT'" in done.stderr


@pytest.mark.parametrize(
    ("content", "problem", "slug"),
    [
        ("color: red", "no setting is called 'color'", "config-unknown"),
        ("config: c.yaml", "no setting is called 'config'", "config-unknown"),
        ("1: x", "no setting is called '1'", "config-unknown"),
        ("in-a-hurry: 1", "expected true or false for 'in-a-hurry'", "config-value"),
        ("coats: [1]", "expected a name or a number for 'coats'", "config-value"),
        ("colour: [[red]]", "expected a name or a number for 'colour'", "config-value"),
        ("coats: yes", "expected a name or a number for 'coats'", "config-value"),
        ("coats: two", "invalid value for '--coats'", "usage"),
        ("coats: 0", "invalid value for '--coats'", "usage"),
        ("- a", "expected flags and values in 'c.yaml', got a list", "config-file"),
        ("a: [", "cannot read the config 'c.yaml'", "config-file"),
        (b"\xff\xfe\x00", "cannot read the config 'c.yaml'", "config-file"),
        ("!!python/object/apply:os.getpid []", "cannot read the config", "config-file"),
        ("[" * 5_000, "cannot read the config 'c.yaml'", "config-file"),
        ("a: " + "x" * 2_000_000, "it has more than 1048576 bytes", "config-file"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(painted, content, problem, slug):
    done = painted(content, "door")
    assert done.exit_code == 2
    assert problem in done.stderr
    assert done.stderr.endswith(f" {slug}\n")
    assert "Traceback" not in done.stderr


def test_an_unknown_key_gets_the_nearest_known_one(painted):
    assert "did you mean 'colour'?" in painted("color: red", "door").stderr


def test_a_file_that_is_not_there_is_reported():
    done = CliRunner().invoke(app, ["paint", "door", "--config", "no-such.yaml"])
    assert done.exit_code == 2
    assert "cannot read the config 'no-such.yaml': No such file" in done.stderr

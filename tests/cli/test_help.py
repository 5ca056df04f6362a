"""Help pages, and the examples in them."""

import re
import shlex

import pytest

from isoscope.cli.main import app
from isoscope.errors import IsoscopeError

COMMANDS = ["", *app.commands]  # pyright: ignore
# Their examples train models or measure many: `make slow` runs them.
DEAR = (
    "sweep",
    "trajectory",
    "nursery ablate",
    "nursery train",
    "tangent",
    "drift",
    "attention",
)


def help_of(isoscope, command):
    done = isoscope(*command.split(), "--help")
    assert done.exit_code == 0
    return done.stdout


def examples_of(text):
    block = re.split(r"\n *Examples:\n", text)[1]
    return [line.strip() for line in block.splitlines() if line.strip()]


def slow_where_dear(command):
    return pytest.param(command, marks=pytest.mark.slow) if command in DEAR else command


@pytest.mark.parametrize("command", [slow_where_dear(each) for each in COMMANDS])
def test_every_help_ends_with_examples_that_work(isoscope, typed, runs, examples, command):
    lines = examples_of(help_of(isoscope, command))
    assert len(lines) >= 2
    for line in lines:
        assert "isoscope" in shlex.split(line)
        done = typed(line)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        assert done.stdout.strip()


@pytest.mark.parametrize("command", DEAR)
def test_options_of_the_examples_of_dear_commands_are_accepted(isoscope, monkeypatch, command):
    """They get as far as opening the worker: no model is loaded or trained."""
    opened = []

    def stop(spec, *_):
        opened.append(spec)
        raise IsoscopeError("it is opened", hint="go on", slug="undefined")

    monkeypatch.setattr(app.commands[command].experiment.spec, "open", stop)  # pyright: ignore
    lines = examples_of(help_of(isoscope, command))
    assert len(lines) >= 2
    for line in lines:
        words = shlex.split(line)
        assert words[0] == "isoscope"
        done = isoscope(*words[1:])
        assert "error: it is opened" in done.stderr, f"{line}\n{done.stderr}"
    assert len(opened) == len(lines)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_plain(isoscope, command):
    text = help_of(isoscope, command)
    assert text.isascii()
    assert "<" not in text.replace("<=", "")
    assert "{" not in text
    assert "..." not in text.replace("RUN...", "").replace("[ARGS]...", "")
    assert max(map(len, text.splitlines())) <= 80
    for line in examples_of(text):
        assert line in text


def test_the_same_letter_means_the_same_everywhere():
    letters: dict[str, set[str]] = {}
    for command in app.commands.values():  # pyright: ignore
        for parameter in command.params:
            short = [opt for opt in parameter.opts if re.fullmatch("-[a-z]", opt)]
            for letter in short:
                letters.setdefault(letter, set()).add(max(parameter.opts, key=len))
    assert letters == {
        "-m": {"--measure"},
        "-o": {"--output"},
        "-q": {"--quiet"},
        "-s": {"--site"},
    }


def test_measure_has_the_flags_of_the_contract():
    flags = {opt for p in app.commands["measure"].params for opt in p.opts}  # pyright: ignore
    assert flags == {
        "vectors", "-m", "--measure", "--all", "-o", "--output", "--column", "--document",
        "--id", "--text", "--name", "--by-order", "--skip-bad", "--as-published", "--zeta",
        "--seed", "--overwrite", "--json", "--csv", "--latex", "--markdown", "--config", "-q",
        "--quiet", "--threads", "--engine", "--workers", "--truncate-dim", "--address",
        "--gpus-per-worker", "--memory-per-worker", "--retries", "--allow-missing",
    }  # fmt: skip

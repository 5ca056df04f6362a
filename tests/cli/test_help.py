"""Help pages, and the examples in them."""

import re
import shlex

import pytest

from isoscope.cli.main import app

COMMANDS = ["", *app.commands]  # pyright: ignore


def help_of(isoscope, command):
    done = isoscope(*command.split(), "--help")
    assert done.exit_code == 0
    return done.stdout


def examples_of(text):
    block = re.split(r"\n *Examples:\n", text)[1]
    return [line.strip() for line in block.splitlines() if line.strip()]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_ends_with_examples_that_work(isoscope, typed, runs, examples, command):
    lines = examples_of(help_of(isoscope, command))
    assert len(lines) >= 2
    for line in lines:
        assert "isoscope" in shlex.split(line)
        done = typed(line)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        assert done.stdout.strip()


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

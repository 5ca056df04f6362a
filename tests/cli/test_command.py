"""Commands that follow from specs: flags, configs, refusals, and what a new option costs."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest
import yaml

from isoscope.api import survey
from isoscope.cli.command import epilog, parameter, set_options
from isoscope.cli.main import app
from isoscope.errors import EngineError
from isoscope.study.experiment import built_in
from isoscope.study.option import Part, about, named_options

SOURCES = Path(__file__).parents[2] / "src"
FORMATS = {"--json", "--csv", "--latex", "--markdown", "--config", "-q", "--quiet"}


@pytest.mark.parametrize("experiment", built_in(), ids=lambda each: each.name)
def test_a_command_has_a_flag_for_every_option_and_nothing_else(experiment):
    command = app.commands[experiment.name]  # pyright: ignore
    options = {**experiment.spec.options(), **named_options(experiment.where)}
    wanted = set(FORMATS)
    for name, option in options.items():
        if option.about.argument:
            wanted.add(name)
        else:
            wanted |= set(filter(None, option.about.flag.split("/"))) or {f"--{option.flag}"}
    assert {opt for each in command.params for opt in each.opts} == wanted
    for each in command.params:
        if each.name in options:
            assert each.required == options[each.name].required
            assert getattr(each, "min", None) is None  # the spec has the bounds


def test_what_was_not_given_is_left_to_the_spec():
    values = {"a": None, "b": False, "c": 0, "d": (), "e": "", "f": 0.0, "quiet": True}
    assert set_options(values, "abcdef") == {"c": 0, "e": "", "f": 0.0}


def test_a_switch_that_is_on_by_default_is_a_bug():
    class Lamp(Part, frozen=True, kw_only=True):
        light: Annotated[bool, about("Light.")] = True

    with pytest.raises(TypeError, match="expected light to be off by default"):
        parameter(named_options(Lamp)["light"])


def test_examples_keep_their_lines():
    assert epilog(("a b", "c")) == "\b\nExamples:\n  a b\n  c\n"
    assert epilog(()) == ""


@pytest.mark.parametrize(
    ("line", "problem", "hint", "slug"),
    [
        ("measure vectors.npy --workers 0", "at least 1 as workers, got 0", "--workers",
         "number-too-small"),
        ("measure vectors.npy --engine pol", "no engine is called 'pol'", "mean 'pool'?",
         "unknown-engine"),
        ("measure vectors.npy --workers 2", "cannot use 2 workers with the engine here",
         "--engine=pool", "engine-workers"),
        ("measure - --engine pool", "cannot hand vectors to the engine pool: it is a stream",
         "only --engine=here takes it", "engine-live"),
        ("survey m - --engine pool", "cannot hand corpus to the engine pool", "--engine=here",
         "engine-live"),
        ("measure vectors.npy --zeta 2", "at least 0 and at most 1 as zeta, got 2.0", "--zeta",
         "number-range"),
        ("measure vectors.npy --zeta nan", "as zeta, got nan", "--zeta", "number-range"),
        ("measure vectors.npy --seed=-1", "from 0 to 2^63 - 1 as seed, got -1", "0 is", "seed"),
        ("measure vectors.npy --threads 0", "and at most 1024 as threads, got 0", "--threads",
         "number-range"),
        ("survey m --pooling mena", "no pooling is called 'mena'", "did you mean 'mean'?",
         "unknown-pooling"),
        ("norm m --variant no-sinks", "no variant is called 'no-sinks'", "mean 'no-sink'?",
         "unknown-variant"),
    ],
)  # fmt: skip
def test_what_the_spec_refuses_is_one_line_and_a_hint(isoscope, line, problem, hint, slug):
    done = isoscope(*line.split())
    assert done.exit_code == 2 and done.stdout == ""
    said = done.stderr.splitlines()
    assert len(said) == 3, done.stderr
    assert said[0].startswith("error: ") and problem in said[0]
    assert said[1].startswith("  hint: ") and hint in said[1]
    assert said[2].endswith(f" {slug}")


def test_a_list_of_texts_is_for_this_process_only(model, texts):
    with pytest.raises(EngineError, match="cannot hand corpus to the engine pool") as caught:
        survey(model, texts, engine="pool", workers=2)
    assert caught.value.code == 2 and caught.value.slug == "engine-live"


# Files.


def config(content):
    Path("c.yaml").write_text(yaml.safe_dump(content))
    return "--config", "c.yaml"


def test_a_file_may_say_where_it_runs_and_what_is_written(isoscope, place):
    flags = config(
        {
            "engine": "pool",
            "workers": 2,
            "output": "runs/a",
            "measure": {"vectors": "vectors.npy"},
        }
    )
    done = isoscope("measure", *flags, "--json")
    assert done.exit_code == 0, done.stderr
    assert "saved runs/a" in done.stderr
    assert (place / "runs" / "a" / "run.json").is_file()
    done = isoscope("measure", *flags, "--engine", "here")  # the command line wins
    assert "cannot use 2 workers with the engine here" in done.stderr


def test_both_engines_write_the_same_bytes(isoscope, place):
    for name, words in (("a", ()), ("b", ("--engine", "pool", "--workers", "2"))):
        done = isoscope("measure", "vectors.npy", "--all", "-q", "-o", f"{name}/run", *words)
        assert done.exit_code == 0, done.stderr
    for name in ("state.safetensors", "readings.parquet", "config.yaml"):
        assert Path("a/run", name).read_bytes() == Path("b/run", name).read_bytes()


def test_values_of_a_file_are_checked_like_those_of_the_command_line(isoscope, place):
    done = isoscope("measure", "vectors.npy", *config({"zeta": 3}))
    assert done.exit_code == 2 and done.stderr.splitlines()[2].endswith(" number-range")
    done = isoscope("measure", "vectors.npy", *config({"thread": 3}))
    first, hint, see = done.stderr.splitlines()
    assert first == "error: no setting is called 'thread', in 'c.yaml'"
    assert hint == "  hint: did you mean 'threads'?"
    assert see.endswith(" config-unknown")


def test_null_is_no_limit_where_none_is_a_value_and_nothing_elsewhere(isoscope, model, corpus):
    words = ("survey", model, corpus, "--sites", "resid.0", "-m", "isoscore", "-q", "--json")
    read = [
        json.loads(isoscope(*words, *config(each)).stdout.splitlines()[0])["n"]
        for each in ({"tokens": 50}, {"tokens": None}, {"tokens": 50, "length": None})
    ]
    assert read[0] < read[1] and read[2] == read[0]


def test_a_list_in_a_file_is_as_good_as_commas(isoscope, model, corpus):
    words = ("survey", model, corpus, "-m", "isoscore", "-q", "--json")
    listed = isoscope(*words, *config({"sites": ["resid.0", "norm.out"]}))
    assert listed.exit_code == 0, listed.stderr
    assert listed.stdout == isoscope(*words, "--sites", "resid.0,norm.out").stdout


# A new option.


@pytest.fixture
def shiny(tmp_path):
    """Return a copy of the sources in which `measure` has one option more."""
    copy = tmp_path / "copy"
    half_written = shutil.ignore_patterns("*.pyc.*")  # the bytecode itself holds for the copy
    shutil.copytree(SOURCES, copy, ignore=half_written)
    path = copy / "isoscope" / "study" / "rows.py"
    text = path.read_text()
    field = '    shiny: Annotated[int, about("Polish N times.", "N", least=1)] = 3\n'
    before = "    skip_bad: Annotated[bool"
    assert text.count(before) == 1
    path.write_text(text.replace(before, field + before))
    return copy


def python(copy, *words):
    done = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "PYTHONPATH": str(copy), "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_a_new_option_is_one_field_and_its_use(shiny, place):
    shown = python(shiny, "-m", "isoscope", "measure", "--help")
    assert re.search(r"--shiny N +Polish N times\.  \[default: 3; x>=1\]", shown)
    code = """
import inspect, runpy, sys, isoscope
print(inspect.signature(isoscope.measure))
for sys.argv[1:] in (["options"], ["stub"]):
    runpy.run_module("isoscope.cli.derive", run_name="__main__")
"""
    derived = python(shiny, "-c", code)
    assert " shiny: int = 3, " in derived.partition("\n")[0]
    row = "| `--shiny N` | `shiny` | whole number | 3 | x&gt;=1 | Polish N times. |"
    assert row in derived
    assert "    shiny: int = 3,\n" in derived
    words = ("-m", "isoscope", "measure", "vectors.npy")
    assert "error: expected at least 1 as shiny, got 0" in python(
        shiny, *words, *config({"shiny": 0})
    )
    words += ("-m", "isoscore", "-q", "-o", "run")
    assert "error" not in python(shiny, *words, *config({"shiny": 7}))
    assert yaml.safe_load(Path("run/config.yaml").read_text())["measure"]["shiny"] == 7

"""Experiments: the package's own, and one of somebody else with surveys inside."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from isoscope.cli.main import app
from isoscope.errors import ConfigError, UnknownNameError
from isoscope.study import experiment
from isoscope.study.experiment import BUILT_IN, EXPERIMENTS, built_in, find_experiment, others

SOURCES = Path(__file__).parents[2] / "src"
TWINS = '''"""Twins: two models over one corpus, one record each."""

from pathlib import Path
from typing import Annotated, ClassVar

from isoscope.display.frames import Field
from isoscope.display.results import RecordLayout, Results
from isoscope.display.table import Column, Table
from isoscope.study.spec import Execution, EngineOptions
from isoscope.study.experiment import register
from isoscope.study.model import CorpusSpec
from isoscope.study.option import about
from isoscope.study.plan import Plan, Unit
from isoscope.study.run import Runnable, run
from isoscope.study.survey import SurveySpec


class Twin(Unit, frozen=True, tag=True):
    model: str


class TwinsPlan(Plan, frozen=True, kw_only=True):
    stages: tuple[tuple[Twin, ...], ...]


class TwinsSpec(Runnable[Results], frozen=True, kw_only=True):
    """Survey two models over one corpus."""

    command: ClassVar[str] = "twins"
    keeps: ClassVar[str] = "records"
    plans: ClassVar[type[Plan]] = TwinsPlan
    first: Annotated[str, about("A model.", "A", argument=True, path=True)]
    second: Annotated[str, about("Another model.", "B", argument=True, path=True)]
    read: CorpusSpec = CorpusSpec()
    tokens: Annotated[int, about("Stop after about N tokens.", "N", least=2)] = 300

    def open(self, notify, live=None):
        return Worker(self)


class Worker:
    def __init__(self, spec):
        self.spec = spec

    def plan(self):
        return TwinsPlan(stages=((Twin(self.spec.first), Twin(self.spec.second)),))

    def enter(self, plan, stage, before):
        pass

    def run(self, unit, scratch, ticks):
        child = SurveySpec.of(
            model=unit.model, corpus=self.spec.read.corpus, tokens=self.spec.tokens,
            sites="norm.out", measures="isoscore", threads=1,
        )
        found = run(child, Execution(output=str(scratch.path / "survey")))
        return {"model": Path(unit.model).name, "isoscore": found[0].value}

    def finish(self, done):
        return Results(done.records, LAYOUT)


def tables(found):
    names = tuple(each["model"] for each in found)
    return (Table("", (Column("model", names), Column("isoscore", names))),)


LAYOUT = RecordLayout("models", tables, dict, (Field("model"), Field("isoscore", "number")))
EXAMPLES = ("isoscope twins a b",)
twins = register(TwinsSpec, where=EngineOptions, noun="models", examples=EXAMPLES)
'''


@pytest.fixture
def twins(tmp_path, monkeypatch):
    """Return the module of somebody else, as it stands on the path once it is installed."""
    folder = tmp_path / "installed"
    (folder / "twins-1.0.dist-info").mkdir(parents=True)
    (folder / "twins.py").write_text(TWINS)
    points = "[isoscope.experiments]\ntwins = twins\n"
    (folder / "twins-1.0.dist-info" / "entry_points.txt").write_text(points)
    (folder / "twins-1.0.dist-info" / "METADATA").write_text("Name: twins\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(folder)
    yield folder
    EXPERIMENTS._things.pop("twins", None)
    sys.modules.pop("twins", None)


@pytest.fixture
def two(tmp_path, tiny, speaker, texts):
    """Return two models and a corpus."""
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(texts))
    return str(tiny), str(speaker), str(corpus)


def test_an_experiment_of_surveys_is_the_same_under_both_engines(twins, two):
    run = find_experiment("twins").function
    here = run(*two)
    assert [each["model"] for each in here] == [Path(model).name for model in two[:2]]
    assert here[0]["isoscore"] != here[1]["isoscore"]
    pool = run(*two, engine="pool", workers=2)
    assert pool.to_dict() == here.to_dict()
    from isoscope.api import survey

    alone = survey(two[0], two[2], tokens=300, sites="norm.out", measures="isoscore", threads=1)
    assert here[0]["isoscore"] == alone[0].value


def test_its_function_and_its_command_follow_from_the_registration(twins, two):
    run = find_experiment("twins").function
    assert list(inspect.signature(run).parameters) == [
        "first", "second", "corpus", "column", "tokens", "engine", "workers", "progress", "say"
    ]  # fmt: skip
    assert run.__name__ == "twins" and run.__doc__ == "Survey two models over one corpus."
    with pytest.raises(ConfigError, match="at least 2 as tokens, got 1"):
        run(*two, tokens=1)
    done = CliRunner().invoke(app, ["twins", *two, "--json"], prog_name="isoscope")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == run(*two).to_json()
    assert "twins" in CliRunner().invoke(app, ["--help"]).stdout
    shown = CliRunner().invoke(app, ["twins", "--help"]).stdout
    assert "Survey two models over one corpus." in shown
    assert "--tokens N" in shown and "[default: 300; x>=2]" in shown
    assert "isoscope twins a b" in shown
    done = CliRunner().invoke(app, ["twin"], prog_name="isoscope")
    assert done.exit_code == 2 and "did you mean 'twins'?" in done.stderr


def isoscope(folder, *words):
    path = os.pathsep.join([str(SOURCES), str(folder)])
    return subprocess.run(
        [sys.executable, "-m", "isoscope", *words],
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_installed_package_brings_its_command(twins, two):
    done = isoscope(twins, "twins", *two, "--engine", "pool", "--workers", "2", "--csv")
    assert done.returncode == 0, done.stderr
    assert [line.split(",")[0] for line in done.stdout.splitlines()] == [
        "model", *(Path(model).name for model in two[:2])
    ]  # fmt: skip


def test_a_package_that_cannot_be_loaded_is_in_nobodys_way(twins):
    (twins / "twins.py").write_text("import nothing_of_that_name")
    shown = isoscope(twins, "--help")
    assert shown.returncode == 0 and "twins" in shown.stdout
    done = isoscope(twins, "twins", "a", "b")
    assert done.returncode == 2
    first, hint, see = done.stderr.splitlines()
    assert first.startswith("error: cannot load the experiment 'twins' from 'twins': ")
    assert "reinstall or remove twins" in hint
    assert see.endswith("#experiment-load")
    (twins / "twins.py").write_text("")
    assert "no experiment is called 'twins'" in isoscope(twins, "twins", "a", "b").stderr


def test_the_experiments_of_the_package_are_those_of_its_table():
    assert [each.name for each in built_in()] == list(BUILT_IN)
    for each in built_in():
        assert each.spec.command == each.name
        assert len(each.examples) >= 2
        assert all(f"isoscope {each.name} " in line for line in each.examples)
        named = inspect.signature(each.function).parameters
        assert {*each.spec.options()} < set(named)


def test_an_unknown_experiment_is_refused_with_the_nearest():
    with pytest.raises(UnknownNameError, match="no experiment is called 'surveys'") as caught:
        find_experiment("surveys")
    assert "did you mean 'survey'?" in caught.value.hint
    assert list(others()) == []


def test_a_name_is_given_once():
    with pytest.raises(ValueError, match="registered twice"):
        experiment.add(find_experiment("survey"))

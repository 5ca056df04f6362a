"""Experiments: the package's own, one in a new folder, and one of somebody else."""

import inspect
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

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
from isoscope.engine.plan import Plan, Unit
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
    EXPERIMENTS.pop("twins", None)
    app.commands.pop("twins", None)
    sys.modules.pop("twins", None)


@pytest.fixture
def two(tmp_path, tiny, speaker, texts):
    """Return two models and a corpus."""
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(texts))
    return str(tiny), str(speaker), str(corpus)


def test_an_experiment_of_surveys_is_the_same_under_both_engines_and_as_a_command(
    twins, two, forked_pool
):
    run = find_experiment("twins").function
    here = run(*two)
    assert [each["model"] for each in here] == [Path(model).name for model in two[:2]]
    assert here[0]["isoscore"] != here[1]["isoscore"]
    words = ["twins", *two, "--engine", "pool", "--workers", "1", "--json"]
    done = CliRunner().invoke(app, words, prog_name="isoscope")
    assert done.exit_code == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == here.to_dict()
    from isoscope.api import survey

    alone = survey(two[0], two[2], tokens=300, sites="norm.out", measures="isoscore", threads=1)
    assert here[0]["isoscore"] == alone[0].value


def test_its_function_and_its_command_follow_from_the_registration(twins, two):
    run = find_experiment("twins").function
    assert list(inspect.signature(run).parameters) == [
        "first", "second", "corpus", "column", "tokens", "engine", "workers", "address",
        "gpus_per_worker", "memory_per_worker", "retries", "allow_missing", "progress",
        "say", "status",
    ]  # fmt: skip
    assert run.__name__ == "twins" and run.__doc__ == "Survey two models over one corpus."
    with pytest.raises(ConfigError, match="at least 2 as tokens, got 1"):
        run(*two, tokens=1)
    done = CliRunner().invoke(app, ["twins", *two, "--json"], prog_name="isoscope")
    assert done.exit_code == 0, done.stderr
    found = run(*two)
    assert done.stdout == found.to_json()
    assert [line.split(",")[0] for line in found.to_csv().splitlines()] == [
        "model", *(Path(model).name for model in two[:2])
    ]  # fmt: skip
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


def test_a_package_that_cannot_be_loaded_is_in_nobodys_way(twins):
    (twins / "twins.py").write_text("import nothing_of_that_name")
    shown = isoscope(twins, "--help")
    assert shown.returncode == 0 and "twins" in shown.stdout
    done = isoscope(twins, "twins", "a", "b")
    assert done.returncode == 2
    first, hint, see = done.stderr.splitlines()
    assert first.startswith("error: cannot load the experiment 'twins' from 'twins': ")
    assert "reinstall or remove twins" in hint
    assert see.endswith(" experiment-load")
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


# One folder, `lab/letters/`: all that a new experiment costs.
LETTERS = {
    "__init__.py": '''"""Letters: how often each occurs in a word."""

from isoscope.study.experiment import Experiment, add

add(
    Experiment(
        "letters",
        """Count the letters of WORD.

        One record per letter.
        """,
        spec_at="isoscope.lab.letters.spec:LettersSpec",
        examples=("isoscope letters banana", "isoscope letters banana --least 2"),
        noun="letters",
        section_at="isoscope.lab.letters.section:SECTION",
        exhibit_at="isoscope.lab.letters.section:draw_letters",
    ),
)
''',
    "spec.py": '''"""The spec of `isoscope letters`, its records and its worker."""

from collections import Counter
from dataclasses import dataclass
from typing import Annotated, ClassVar

import msgspec

from isoscope.accumulate.survey import Survey
from isoscope.display import RecordLayout, Results
from isoscope.display.frames import Field, Record
from isoscope.display.table import Column, Table
from isoscope.store import new_origin, save
from isoscope.store.state import State
from isoscope.study.option import about
from isoscope.engine.plan import Plan, Unit
from isoscope.study.run import Planner, Runnable
from isoscope.types import Reading


@dataclass(frozen=True)
class Letter(Record):
    letter: str
    count: int


def tables(found):
    letters = tuple(each.letter for each in found)
    counts = tuple(str(each.count) for each in found)
    return (Table("letters", (Column("letter", letters, words=True), Column("count", counts))),)


LAYOUT = RecordLayout(
    "letters", tables, Letter.to_dict, (Field("letter"), Field("count", "integer"))
)


class OneLetter(Unit, frozen=True, tag=True):
    letter: str


class LettersPlan(Plan, frozen=True, kw_only=True):
    stages: tuple[tuple[OneLetter, ...], ...]


class LettersSpec(Runnable[Results[Letter]], frozen=True, kw_only=True):
    """Count the letters of a word."""

    command: ClassVar[str] = "letters"
    keeps: ClassVar[str] = "records"
    plans: ClassVar[type[Plan]] = LettersPlan
    worker_at: ClassVar[str] = "isoscope.lab.letters.spec:LettersWorker"

    word: Annotated[str, about("A word.", "WORD", argument=True)]
    least: Annotated[int, about("Skip letters that occur less often.", "N", least=1)] = 1


class LettersWorker(Planner[Results[Letter]]):
    def __init__(self, spec, notify, live):
        self.spec = spec

    def plan(self):
        return LettersPlan(stages=(tuple(map(OneLetter, sorted(set(self.spec.word)))),))

    def run(self, unit, scratch, ticks):
        return Letter(unit.letter, Counter(self.spec.word)[unit.letter])

    def finish(self, done):
        found = msgspec.convert(done.records, list[Letter])
        found = [each for each in found if each.count >= self.spec.least]
        if done.target is not None:
            source = {"name": self.spec.word, "fingerprint": self.spec.word, "rows": 1}
            origin = new_origin(
                sources=[{**source, "dtype": "float32", "width": 1}],
                settings={"measures": ["isoscore"], "as_published": False, "documents": False},
                seed=0,
                kind="letters",
            )
            name = done.target.name
            one = Reading(name, "rows", "all", "", None, "isoscore", 0.5, None, None, 9, 3)
            config = {"letters": self.spec.to_config()}
            state = State(Survey())
            save(done.target, state, [one], origin, config, done.overwrite, resume=True)
        return Results(found, LAYOUT)
''',
    "section.py": '''"""The section of letters."""

from isoscope.display.page.section import Drawn, Finding, Panel, Section


def draw_letters(run):
    return Drawn(findings=[Finding("26", "letters are known", "the alphabet")], noun="letters")


def show(exhibits):
    named = [each.name for each in exhibits if each.noun == "letters"]
    return Panel(lead=(f"Letters of {named[0]}.",)) if named else None


SECTION = Section("letters", "Letters", show)
''',
}


@pytest.fixture(scope="module")
def with_letters(tmp_path_factory):
    """Return a copy of the package with one more folder in lab/."""
    folder = tmp_path_factory.mktemp("copy")
    half_written = shutil.ignore_patterns("*.pyc.*")  # the bytecode itself holds for the copy
    shutil.copytree(SOURCES / "isoscope", folder / "isoscope", ignore=half_written)
    (folder / "isoscope" / "lab" / "letters").mkdir()
    for name, text in LETTERS.items():
        (folder / "isoscope" / "lab" / "letters" / name).write_text(text)

    def run(*words, module="isoscope"):
        done = subprocess.run(
            [sys.executable, *(("-m", module) if module else ("-c",)), *map(str, words)],
            env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "100"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_a_new_folder_is_a_new_command_with_help_formats_config_and_engines(
    with_letters, tmp_path
):
    assert "Count the letters of WORD." in with_letters("--help")
    shown = with_letters("letters", "--help")
    assert "One record per letter." in shown and "--least N" in shown
    assert "[default: 1; x>=1]" in shown and "isoscope letters banana --least 2" in shown
    records = [
        json.loads(line) for line in with_letters("letters", "banana", "--json").splitlines()
    ]
    assert records == [
        {"letter": "a", "count": 3}, {"letter": "b", "count": 1}, {"letter": "n", "count": 2}
    ]  # fmt: skip
    (tmp_path / "letters.yaml").write_text("letters:\n  least: 2\n")
    words = ("letters", "banana", "--config", tmp_path / "letters.yaml", "--csv")
    assert with_letters(*words) == "letter,count\na,3\nn,2\n"
    assert with_letters(*words, "--engine", "pool", "--workers", "2") == with_letters(*words)


def test_it_is_a_function_of_the_package_with_its_signature(with_letters):
    code = (
        "import inspect, isoscope; found = isoscope.letters('banana', least=2);"
        "print([each.letter for each in found], 'letters' in dir(isoscope));"
        "print(inspect.signature(isoscope.letters)); print(isoscope.letters.__doc__)"
    )
    first, signature, help = with_letters(code, module="").splitlines()
    assert first == "['a', 'n'] True"
    assert signature.startswith("(word: str, *, least: int = 1, output: str")
    assert ", engine: str = 'here', workers: int = 1" in signature
    assert help == "Count the letters of a word."


def test_it_is_in_the_list_of_options_and_in_the_type_stub(with_letters):
    page = with_letters("options", module="isoscope.cli.derive")
    assert "## letters" in page and "Skip letters that occur less often." in page
    assert "def letters(" in with_letters("stub", module="isoscope.cli.derive")


def test_its_run_folder_has_its_section_and_its_findings_in_the_report(with_letters, tmp_path):
    run = tmp_path / "run"
    with_letters("letters", "banana", "-o", run)
    with_letters("report", run, "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert '<section id="letters"' in page and "Letters of run." in page
    assert "letters are known" in page

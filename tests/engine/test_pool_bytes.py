"""Both engines give the same bytes: vectors, the survey of a model, a sweep."""

import json
import shutil

import numpy as np
import pytest

import isoscope as iso

BYTES = ("state.safetensors", "readings.parquet")
SWEEP = {
    "label": "stars",
    "weights": [-3, 3],
    "seeds": 1,
    "steps": 2,
    "length": 32,
    "probe": 24,
    "learning_rate": 5e-3,
}
SURVEY = {
    "all": True,
    "tokens": None,
    "unit": 200,
    "sites": ["resid.1", "embed.weight"],
}


@pytest.fixture(scope="session")
def vectors(tmp_path_factory):
    """Return a folder of files, each of which is a unit."""
    folder = tmp_path_factory.mktemp("vectors") / "rows"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(9):
        rows = rng.normal(size=(60 + 7 * number, 6)) + 0.4
        lines = (json.dumps({"vector": row.tolist()}) + "\n" for row in rows)
        (folder / f"part-{number}.jsonl").write_text("".join(lines))
    return folder


@pytest.fixture(scope="session")
def corpus(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("corpus") / "texts.txt"
    path.write_text("\n".join(texts) + "\n")
    return path


@pytest.fixture(scope="session")
def task(tmp_path_factory):
    """Return a file of short texts, of which one word decides the label."""
    rng = np.random.default_rng(5)
    words = ["the", "boats", "carry", "people", "town", "small", "fire", "hills", "road"]
    path = tmp_path_factory.mktemp("task") / "reviews.jsonl"
    with path.open("w") as file:
        for number in range(60):
            text = rng.choice(words, size=6 + number % 5).tolist()
            text[number % len(text)] = "river" if number % 2 else "house"
            file.write(json.dumps({"text": " ".join(text), "stars": number % 2}) + "\n")
    return path


@pytest.fixture
def contents(tmp_path):
    """Return a function that does a run in a folder of the same name and returns its bytes."""

    def compute(verb, *arguments, **options):
        target = tmp_path / "run"
        getattr(iso, verb)(*arguments, output=target, **options)
        found = {name: (target / name).read_bytes() for name in BYTES}
        shutil.rmtree(target)
        assert list(tmp_path.iterdir()) == []
        return found

    return compute


@pytest.mark.parametrize("threads", [1, 2])
def test_vectors_in_a_folder(contents, vectors, threads):
    options = {"all": True, "threads": threads}
    here = contents("measure", vectors, **options)
    assert len(here["state.safetensors"]) > 1000
    for workers in (1, 3) if threads == 1 else (2,):
        assert contents("measure", vectors, engine="pool", workers=workers, **options) == here


def test_the_folder_of_vectors_is_several_units(vectors):
    from isoscope.engine import Notify
    from isoscope.study.rows import MeasureSpec

    plan = MeasureSpec.of(vectors=str(vectors), all=True).open(Notify()).plan()
    assert [len(units) for units in plan.stages] == [9, 9]


def units_of_survey(tiny, corpus):
    from isoscope.engine import Notify
    from isoscope.study.survey import SurveySpec

    spec = SurveySpec.of(model=str(tiny), corpus=str(corpus), **SURVEY)
    return [len(units) for units in spec.open(Notify()).plan().stages]


def same_survey(contents, tiny, corpus, workers, threads):
    here = contents("survey", tiny, corpus, threads=threads, **SURVEY)
    for each in workers:
        options = {**SURVEY, "threads": threads, "engine": "pool", "workers": each}
        assert contents("survey", tiny, corpus, **options) == here


@pytest.mark.slow
def test_the_survey_of_a_model_in_two_stages(contents, tiny, corpus):
    first, second = units_of_survey(tiny, corpus)
    assert first > second > 2  # the matrices are a unit of the first stage
    same_survey(contents, tiny, corpus, (2,), 1)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_the_survey_of_a_model_with_any_number_of_workers(contents, tiny, corpus, threads):
    same_survey(contents, tiny, corpus, (1, 2, 3), threads)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_a_sweep_with_any_number_of_workers(contents, tiny, task, threads):
    here = contents("sweep", tiny, task, threads=threads, **SWEEP)
    for workers in (1, 2, 3):
        options = {**SWEEP, "threads": threads, "engine": "pool", "workers": workers}
        assert contents("sweep", tiny, task, **options) == here

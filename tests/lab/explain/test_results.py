"""explain: the causes of each site of a run, in any format."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

from isoscope import api
from isoscope.accumulate import ArrayBlock
from isoscope.accumulate.survey import Survey
from isoscope.causes import ORDER
from isoscope.causes.cause import NO_BANDS, site_causes
from isoscope.display import Results
from isoscope.errors import ConfigError, StoreError, UndefinedError, UnknownNameError
from isoscope.hashing import named_documents
from isoscope.lab.explain.results import CAUSES, warnings_with_sites
from isoscope.store import new_origin, save
from isoscope.store.state import StateReader
from planted_survey import KINDS, WIDTH, surveyed


@pytest.fixture
def vectors_run(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4000, 64)) + 0.3
    rows[:, 7] += 5
    api.measure(rows, output=tmp_path / "vectors")
    return tmp_path / "vectors"


def test_vectors_are_explained_by_removal_alone_and_it_says_so(vectors_run):
    causes = api.explain(vectors_run)
    assert [each.cause for each in causes] == ["sinks", "dimensions"]
    by_name = {each.cause: each for each in causes}
    assert by_name["dimensions"].named[0]["dimension"] == 7
    assert by_name["dimensions"].share > 0.8
    # without it, rows have 63 dimensions of mean 0.3 and variance 1
    truth = 63 * 0.3**2 / (63 * (1 + 0.3**2))
    assert by_name["dimensions"].falls_to == pytest.approx(truth, abs=0.005)
    assert all(each.warnings == (NO_BANDS,) for each in causes)
    assert {each.run for each in causes} == {"vectors"}


def test_a_warning_of_some_sites_names_them_and_one_of_all_does_not():
    @dataclass(frozen=True)
    class Record:
        site: str
        warnings: tuple[str, ...]

    records = [Record("resid.0", ("few",)), Record("pooled", ("few", "no token counts"))]
    assert warnings_with_sites(records) == ("few", "pooled: no token counts")


def test_a_saved_survey_is_explained_as_it_was(tmp_path):
    survey = surveyed()
    survey.merge(surveyed("resid.2", seed=1))
    origin = new_origin(sources=[], settings={"measures": ["mean-cosine"]}, seed=0)
    save(tmp_path / "run", survey, [], origin, {"survey": {}}, False)
    causes = api.explain(tmp_path / "run")
    assert causes[:5] == site_causes(survey.held, "resid.1", "all", "run")
    assert len(causes) == 10
    lines = str(causes).splitlines()
    assert lines[0] == "run run, variant all, by removal: shares of the mean cosine"
    assert lines[2].split() == ["site", "mean", "cosine", "sinks", "dimensions"]
    assert [line.split()[0] for line in lines[3:5]] == ["resid.1", "resid.2"]
    (second,) = [n for n, line in enumerate(lines) if "by dependence" in line]
    heads = lines[second + 1 : second + 4]
    assert any(
        line.split() == ["site", "mean", "cosine", "frequency", "position", "mean"]
        for line in heads
    )
    assert "add up to 100 %" in " ".join(" ".join(lines).split())
    one = api.explain(tmp_path / "run", sites=["resid.2"])
    assert {each.site for each in one} == {"resid.2"}


def test_every_format_has_every_cause(vectors_run):
    causes = api.explain(vectors_run)
    lines = [json.loads(line) for line in causes.to_json().splitlines()]
    assert [line["cause"] for line in lines] == [each.cause for each in causes]
    assert causes.to_csv().count("\n") == 3
    assert causes.to_csv().startswith("run,site,variant,cause,scale,share,low,high,whole,")
    for text in (causes.to_markdown(), causes.to_latex(), str(causes), causes._repr_html_()):
        assert "dimensions" in text and "none stands out" not in text
    assert causes.to_dict()[1]["named"][0]["dimension"] == 7


def test_a_site_with_nothing_to_explain_is_excluded_and_the_rest_continues(tmp_path):
    rng = np.random.default_rng(2)
    blank = Survey()
    rows = rng.normal(size=(900, WIDTH))
    blank.update(
        ("embed", "ordinary"), KINDS, ArrayBlock(rows, named_documents(np.arange(900)))
    )
    survey = surveyed()
    survey.merge(blank)
    origin = new_origin(sources=[], settings={"measures": ["mean-cosine"]}, seed=0)
    save(tmp_path / "run", survey, [], origin, {"survey": {}}, False)
    causes = api.explain(tmp_path / "run")
    assert {each.site for each in causes} == {"resid.1"}
    (said,) = causes.left_out
    assert said.startswith("embed: expected a mean cosine above zero")
    assert "skipped: embed" in str(causes)


def test_a_run_of_which_nothing_can_be_explained_is_one_error(tmp_path):
    rows = np.random.default_rng(3).normal(size=(500, 16))
    api.measure(np.concatenate([rows, -rows]), output=tmp_path / "ball")
    with pytest.raises(UndefinedError, match="rows: expected a mean cosine above zero"):
        api.explain(tmp_path / "ball")


def test_a_run_without_directions_says_what_to_measure(tmp_path):
    rows = np.random.default_rng(4).normal(size=(200, 8)) + 1
    api.measure(rows, measures=["isoscore"], output=tmp_path / "run")
    with pytest.raises(StoreError, match="expected sums of directions at rows") as told:
        api.explain(tmp_path / "run")
    assert "mean-cosine" in told.value.hint


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        ({"sites": ["row"]}, "no site is called 'row'"),
        ({"variant": "no-sinks"}, "no variant is called 'no-sinks'"),
    ],
)
def test_a_name_that_is_not_known_gets_the_nearest(vectors_run, how, problem):
    with pytest.raises(UnknownNameError, match=problem) as told:
        api.explain(vectors_run, **how)
    assert "did you mean" in told.value.hint


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(StoreError, match="no run folder"):
        api.explain(tmp_path / "nowhere")


def test_no_causes_are_an_empty_table():
    assert str(Results([], CAUSES, left_out=["a: b"])) == "no readings\n\nskipped: a: b"


def test_a_survey_of_a_model_tells_all_five_causes(tiny, texts, tmp_path):
    api.survey(tiny, texts, output=tmp_path / "run", sites=["resid"], tokens=None)
    causes = api.explain(tmp_path / "run")
    assert {each.site for each in causes} == {"resid.0", "resid.1", "resid.2"}
    for site in ("resid.0", "resid.1", "resid.2"):
        here = [each for each in causes if each.site == site]
        assert [each.cause for each in here] == list(ORDER)
        by_dependence = [each.share for each in here if each.scale == "dependence"]
        assert sum(by_dependence) == pytest.approx(1)
        assert here[0].warnings == ()


def test_frequencies_may_come_from_a_table(tiny, texts, tmp_path):
    from transformers import AutoTokenizer

    size = len(AutoTokenizer.from_pretrained(tiny))
    np.save(tmp_path / "flat.npy", np.ones(size))
    given = {"sites": ["resid.2"], "measures": ["mean-cosine"], "tokens": None}
    counted = api.survey(tiny, texts, **given)
    flat = api.survey(tiny, texts, frequencies=tmp_path / "flat.npy", **given)
    bands = {each.group for each in flat if each.group.startswith("frequency")}
    assert bands == {"frequency above 1e-2"}
    assert bands < {each.group for each in counted}
    np.save(tmp_path / "other.npy", np.ones(size + 1))
    with pytest.raises(ConfigError, match=f"expected counts of {size} tokens"):
        api.survey(tiny, texts, frequencies=tmp_path / "other.npy", **given)


def test_where_no_token_repeats_the_rest_is_read_and_it_says_why(decoder):
    from transformers import AutoTokenizer

    words = [
        each for each in AutoTokenizer.from_pretrained(decoder).get_vocab() if each[0].isalpha()
    ]
    texts = [" ".join(words[start : start + 4]) for start in range(0, len(words) - 3, 4)]
    found = api.survey(decoder, texts, sites=["resid.1"], tokens=None)
    read = {each.measure for each in found}
    assert {"mean-cosine", "isoscore", "sentence-similarity", "inter-similarity"} <= read
    assert not read & {"self-similarity", "mev", "intra-similarity"}
    said = [each for each in found.left_out if "self-similarity" in each]
    assert said and "type" in said[0]
    assert said[0] in str(found)


def test_only_the_sites_named_are_read(tiny_run, monkeypatch):
    read_at = []
    original = StateReader.survey_of

    def counted(self, site):
        read_at.append(site)
        return original(self, site)

    monkeypatch.setattr("isoscope.store.run.Run.survey", None)  # what reads a whole state
    monkeypatch.setattr(StateReader, "survey_of", counted)
    api.explain(tiny_run, sites=["resid.1"])
    assert set(read_at) == {"resid.1"}

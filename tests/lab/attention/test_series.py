"""isoscope attention of a series: curves over training, the same bits as single runs."""

import shutil
from dataclasses import replace

import pytest

import isoscope as iso
from isoscope.errors import ConfigError, IsoscopeError, MergeError
from isoscope.lab.attention.spec import AttentionSpec, HeadSeriesSpec

OPTIONS = {"queries": 6, "threads": 1}


@pytest.fixture(scope="module")
def followed(series, corpus, tmp_path_factory):
    path = tmp_path_factory.mktemp("followed") / "run"
    return path, iso.attention(series, corpus, output=path, **OPTIONS)


def test_every_step_reads_as_a_run_of_its_own(followed, series, corpus):
    path, found = followed
    alone = iso.attention(series / "step_10", corpus, **OPTIONS)
    step = [replace(each, run="", step=None) for each in found if each.step == 10]
    assert step == [replace(each, run="") for each in alone]
    assert {each.step for each in found} == {0, 10, 100}
    assert iso.read(path).to_dict() == found.to_dict()


def test_the_table_has_a_line_per_step_and_says_what_comes_first(followed):
    _, found = followed
    shown = str(found)
    assert "3 checkpoints, step 0 to 100" in shown
    assert [line.split()[0] for line in shown.splitlines()[3:6]] == ["0", "10", "100"]
    dots = {
        each.step: each.value
        for each in found
        if (each.site, each.measure, each.group)
        == ("head.0.0", "query-key-dot", "before-rotation")
    }
    # the planted vectors have length 3 sqrt(8): their product over sqrt(8) is 25
    assert dots[0] < dots[10] < dots[100] == pytest.approx(9 * 8**0.5, rel=0.2)
    assert any("heads change in query-key-dot" in text for text in found.remarks)


def test_a_series_is_checked_reported_and_explained(followed, tmp_path):
    path, found = followed
    rule = "query-norm@head.0.0 > 1.5x"  # of the first step
    (outcome,) = iso.check(path, rule)
    assert outcome.state == "breached"
    assert [e.step for e in iso.read(path, measures=["sink-mass"], sites=["head.0.0"])] == [
        0, 10, 100,
    ]  # fmt: skip
    with pytest.raises(MergeError, match="which is a series"):
        iso.merge([path, path], tmp_path / "both")
    explained = iso.explain(path, sites=["head.0.0"])
    last = {e.measure: e.value for e in found if (e.site, e.step) == ("head.0.0", 100)}
    assert [each.query_cosine for each in explained] == [last["query-cosine"]]
    assert len(iso.explain(path)) == 8
    iso.report(path, tmp_path / "page.html")
    assert "before rotation" in (tmp_path / "page.html").read_text()


def test_an_unfinished_series_is_resumed(series, corpus, tmp_path, followed, monkeypatch):
    from isoscope.lab.attention.series import HeadSeriesWorker

    _, whole = followed
    usual, done = HeadSeriesWorker._measure, []

    def measure(self, unit, scratch, ticks):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(unit.step)
        return usual(self, unit, scratch, ticks)

    monkeypatch.setattr(HeadSeriesWorker, "_measure", measure)
    with pytest.raises(KeyboardInterrupt):
        iso.attention(series, corpus, output=tmp_path / "run", **OPTIONS)
    monkeypatch.undo()
    found = iso.attention(series, corpus, output=tmp_path / "run", **OPTIONS)
    assert [replace(e, run="") for e in found] == [replace(e, run="") for e in whole]


def test_a_broken_checkpoint_is_named_or_skipped(series, corpus, tmp_path):
    folder = tmp_path / "series"
    shutil.copytree(series, folder)
    weights = folder / "step_10" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    run = tmp_path / "run"
    with pytest.raises(IsoscopeError, match="cannot load the checkpoint step_10 of step 10"):
        iso.attention(folder, corpus, output=run, **OPTIONS)
    # what was read before stays: the option changes no number, and the run is resumed
    found = iso.attention(folder, corpus, output=run, skip_broken=True, **OPTIONS)
    assert {each.step for each in found} == {0, 100}
    assert any("skipped step_10" in text for text in found.remarks)


def test_checkpoints_of_other_models_are_refused(series, tiny, corpus):
    with pytest.raises(ConfigError, match="cannot follow") as error:
        iso.attention([series / "step_0", other(tiny, series)], corpus, **OPTIONS)
    assert error.value.slug == "series-shapes"


def other(tiny, series):
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    folder = series.parent / "other" / "step_7"
    tokenizer = AutoTokenizer.from_pretrained(tiny)
    tokenizer.save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=1,
        num_attention_heads=4,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def test_a_name_with_a_comma_is_a_model_where_there_is_one(series, tmp_path):
    comma = tmp_path / "a,b"
    comma.mkdir()
    assert AttentionSpec.of(model=str(comma)).load.model == (str(comma),)
    assert isinstance(AttentionSpec.of(model="a,b"), HeadSeriesSpec)
    with pytest.raises(ConfigError, match="needs at least 2 checkpoints") as error:
        only = tmp_path / "only"
        shutil.copytree(series / "step_0", only / "step_0")
        iso.attention(only)
    assert error.value.slug == "series-one"

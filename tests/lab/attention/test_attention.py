"""isoscope attention: from a model to readings, runs, tables and errors."""

import json

import numpy as np
import pytest
import torch

import isoscope as iso
from isoscope.accumulate import Keys, Queries
from isoscope.engine import Notify
from isoscope.errors import ConfigError, TooFewRowsError, UndefinedError
from isoscope.lab.attention.results import alignment, layers_of
from isoscope.lab.attention.section import ALONG, POINTS, SLOW, draw_attention
from isoscope.lab.attention.spec import AttentionSpec
from isoscope.lab.attention.worker import AttentionWorker
from isoscope.study.measure_choice import head_measures

STACKS = ("enc", "dec", "cross")


@pytest.fixture(scope="module")
def run(llama, corpus, tmp_path_factory):
    path = tmp_path_factory.mktemp("heads") / "run"
    found = iso.attention(llama, corpus, output=path, queries=6, threads=1)
    return path, found


def test_every_head_has_every_reading_with_an_interval(run):
    _, found = run
    heads = {f"head.{layer}.{number}" for layer in range(2) for number in range(4)}
    of_heads = [each for each in found if each.site.startswith("head")]
    after = [each for each in of_heads if not each.group]
    assert {(each.site, each.measure) for each in after} == {
        (site, name) for site in heads for name in head_measures()
    }
    before = {each.measure for each in of_heads if each.group == "before-rotation"}
    assert before == {"query-norm", "key-norm", "query-key-cosine", "query-key-dot"}
    assert all(each.low <= each.value <= each.high for each in of_heads)
    assert {each.site for each in found} - heads == {"embed", "resid.0"}
    assert found.left_out == ()
    assert {each.d for each in of_heads} == {8}


def test_heads_that_share_keys_read_the_same_keys_which_count_once(run):
    path, found = run
    key = {each.site: each.value for each in found if each.measure == "key-cosine"}
    assert key["head.0.0"] == key["head.0.1"] != key["head.0.2"] == key["head.0.3"]
    first = layers_of(found)[0]
    assert first.median("key-cosine") == (key["head.0.0"] + key["head.0.2"]) / 2
    saved = iso.load(path)
    assert set(saved.sites) == {each.site for each in found}
    places = [site for site, _ in saved.places if site.startswith("k.")]
    assert places == ["k.0.0", "k.0.1", "k.1.0", "k.1.1"]
    assert Keys in saved.survey_of("head.0.3").held["head.0.3", "all"]


def test_curves_of_heads_lie_about_their_readings(run):
    path, found = run
    drawn = draw_attention(iso.load(path))
    values = {(each.site, each.measure): each.value for each in found if not each.group}
    along = {
        (each.along, each.measure): each for each in drawn.curves if each.site == "head.1.2"
    }
    assert {name for kind, name in along if kind == "positions"} == set(ALONG)
    assert {name for kind, name in along if kind == "documents"} == set(head_measures()) - set(
        SLOW
    )
    assert along["documents", "key-norm"].at == tuple(f"share {n}" for n in range(1, 9))
    for name in ALONG:  # a mean over all is between the means over parts
        parts = along["positions", name].value
        assert parts.min() <= values["head.1.2", name] <= parts.max(), name
    assert sum(len(each.value) for each in drawn.curves) < POINTS
    assert drawn.findings[0].text.startswith("of 8 heads have mean")


def test_curves_that_a_page_has_no_room_for_are_named(run, monkeypatch):
    path, _ = run
    monkeypatch.setattr("isoscope.lab.attention.section.POINTS", 40)
    drawn = draw_attention(iso.load(path))
    kept = {(each.along, each.measure) for each in drawn.curves}
    assert kept and sum(len(each.at) for each in drawn.curves) <= 40
    assert [remark.partition(":")[0] for remark in drawn.remarks] == [
        "no room on this page for curves of heads over documents",
        "no room on this page for curves of heads over positions",
    ]


def test_the_table_has_a_line_per_layer_and_json_a_line_per_reading(run):
    _, found = run
    shown = str(found)
    assert "aligned before" in shown and "before rotation:" in shown
    assert [line.split()[0] for line in shown.splitlines()[3:5]] == ["0", "1"]
    lines = [json.loads(line) for line in found.to_json().splitlines()]
    assert len(lines) == len(found) and lines[0]["site"] == "head.0.0"
    assert sum(alignment(found).values()) == 8


def test_heads_of_too_few_documents_are_neither_and_the_table_says_why(llama, texts):
    found = iso.attention(llama, texts[:3], threads=1)
    assert alignment(found) == {"aligned": 0, "opposed": 0, "neither": 8}
    assert "no interval" in str(found)


def test_a_run_is_read_back_merged_and_compared(run, llama, tmp_path, texts):
    path, found = run
    assert iso.read(path).to_dict() == found.to_dict()
    halves = []
    for number, part in enumerate((texts[:20], texts[20:])):
        (tmp_path / f"{number}.txt").write_text("\n".join(part))
        halves.append(tmp_path / f"half-{number}")
        iso.attention(
            llama, tmp_path / f"{number}.txt", output=halves[-1], queries="all", threads=1
        )
    merged = iso.merge(halves, tmp_path / "merged")
    whole = iso.attention(llama, texts, queries="all", threads=1)
    values = {(e.site, e.measure, e.group): e.value for e in whole}
    for each in merged:
        expected = values[each.site, each.measure, each.group]
        assert each.value == pytest.approx(expected, rel=1e-4, abs=1e-6), each.measure
    changes = iso.compare(path, tmp_path / "merged")
    assert any(each.site == "head.1.3" for each in changes)


def test_one_measure_of_one_head_is_read_by_name(run):
    path, found = run
    one = iso.read(path, measures=["attention-entropy"], sites=["head.1.3"])
    assert one.to_dict() == [
        each
        for each in found.to_dict()
        if (each["site"], each["measure"]) == ("head.1.3", "attention-entropy")
    ]


def test_units_change_no_number(run, llama, corpus):
    _, found = run
    cut = iso.attention(llama, corpus, queries=6, threads=1, unit=150)
    names = [(each.site, each.measure, each.group) for each in found]
    assert [(each.site, each.measure, each.group) for each in cut] == names
    values, ends = ([e.value for e in found], [e.high for e in found])
    # 1e-5: sums in another order, scatters in float32
    assert [e.value for e in cut] == pytest.approx(values, rel=1e-5, abs=1e-7)
    assert [e.high for e in cut] == pytest.approx(ends, rel=1e-3, abs=1e-5)


def test_sampled_queries_are_near_all_of_them(llama, corpus, run):
    _, sampled = run
    whole = {
        (e.site, e.measure): e
        for e in iso.attention(llama, corpus, queries="all", threads=1)
        if not e.group
    }
    for each in sampled:
        exact = whole.get((each.site, each.measure))
        if each.group or exact is None:
            continue
        if each.n == exact.n:  # queries and keys themselves are never sampled
            assert each.value == pytest.approx(exact.value, rel=1e-6)
        else:
            assert each.low <= exact.value <= each.high or each.value == pytest.approx(
                exact.value, rel=0.05
            )


def test_the_worker_opens_anywhere(llama, corpus):
    spec = AttentionSpec.of(model=str(llama), corpus=str(corpus), tokens=100, threads=1)
    worker = spec.open(Notify())
    assert isinstance(worker, AttentionWorker)
    assert spec.decode_plan(worker.plan().encode()).sites[0] == "head.0.0"


def test_both_stacks_and_the_crossing_of_an_encoder_decoder(tiny, texts, tmp_path):
    from transformers import AutoTokenizer, T5Config, T5ForConditionalGeneration

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(tiny)
    tokenizer.save_pretrained(tmp_path)
    config = T5Config(
        vocab_size=len(tokenizer), d_model=16, d_kv=4, d_ff=16, num_layers=2, num_heads=2,
        decoder_start_token_id=0,
    )  # fmt: skip
    T5ForConditionalGeneration(config).save_pretrained(tmp_path)
    found = iso.attention(tmp_path, texts[:20], threads=1)
    heads = [f"{stack}.head.{n}.{h}" for stack in STACKS for n in range(2) for h in range(2)]
    sites = list(dict.fromkeys(each.site for each in found))
    assert sites[: len(heads)] == heads
    every = {(each.site, each.measure) for each in found}
    assert all((site, name) in every for site in heads for name in head_measures())
    assert [line.split()[0] for line in str(found).splitlines()[3:9]] == [
        f"{stack}.{n}" for stack in STACKS for n in range(2)
    ]


@pytest.mark.parametrize("wrong", ["none", "0", "-3", "2.5"])
def test_a_number_of_queries_that_is_none_is_refused_before_a_model_is_loaded(wrong):
    with pytest.raises(ConfigError, match="expected a number of queries or all") as error:
        iso.attention("no/such/model", queries=wrong)
    assert error.value.slug == "queries"


def test_documents_of_one_token_are_refused(decoder, tmp_path):
    (tmp_path / "short.txt").write_text("a\nb\n")
    with pytest.raises(TooFewRowsError, match="at least two tokens"):
        iso.attention(decoder, tmp_path / "short.txt")


def test_a_model_without_heads_is_refused(tiny, tmp_path):
    from transformers import AutoTokenizer, MambaConfig, MambaModel

    tokenizer = AutoTokenizer.from_pretrained(tiny)
    tokenizer.save_pretrained(tmp_path)
    size = len(tokenizer)
    config = MambaConfig(vocab_size=size, hidden_size=16, num_hidden_layers=2, state_size=4)
    MambaModel(config).save_pretrained(tmp_path)
    with pytest.raises(UndefinedError, match="which has none") as error:
        iso.attention(tmp_path)
    assert error.value.slug == "no-heads"


def test_mean_queries_and_the_stream_are_those_of_a_survey(run, llama, corpus):
    path, _ = run
    found = iso.load(path).survey_of("head.1.2").held["head.1.2", "all"][Queries].finalize()
    survey = iso.survey(
        llama,
        corpus,
        sites=["q.1.2", "resid.0"],
        measures=["mean-cosine", "isoscore"],
        threads=1,
    )
    whole = [e for e in survey if e.variant == "all" and not e.group]
    values = {e.measure: e.value for e in whole if e.site == "q.1.2"}
    stream = next(e for e in whole if (e.site, e.measure) == ("resid.0", "mean-cosine"))
    ours = next(e for e in iso.read(path) if e.site == "resid.0")
    ends = (stream.value, stream.low, stream.high)
    assert (ours.value, ours.low, ours.high) == pytest.approx(ends, abs=1e-6)
    heads = {e.measure: e.value for e in iso.read(path) if e.site == "head.1.2" and not e.group}
    assert heads["query-cosine"] == pytest.approx(values["mean-cosine"], abs=1e-6)
    assert heads["query-isoscore"] == pytest.approx(values["isoscore"], rel=1e-4)
    assert np.linalg.norm(found.sizes @ found.mean / found.sizes.sum()) == pytest.approx(
        heads["query-norm"]
    )

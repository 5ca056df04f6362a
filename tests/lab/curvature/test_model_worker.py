"""isoscope curvature of a model: token types of a small BERT, runs, pages and errors."""

import json

import numpy as np
import pytest
import torch

import isoscope as iso
from isoscope.accumulate import Neighbourhoods
from isoscope.display.page.section import Exhibit
from isoscope.errors import IsoscopeError, MergeError, StoreError
from isoscope.lab.curvature.section import SECTION, draw_curvature
from isoscope.lab.curvature.type_results import known_types
from isoscope.store import load

FEW = {"occurrences": 16, "rank": 2, "threads": 1}


@pytest.fixture(scope="module")
def types(tiny, texts, tmp_path_factory):
    """Return the folder and the records of the token types of a small model."""
    folder = tmp_path_factory.mktemp("types") / "run"
    corpus = folder.parent / "corpus.txt"
    corpus.write_text("\n".join(texts))
    return folder, iso.curvature(tiny, corpus, output=folder, **FEW), corpus


def test_kept_occurrences_are_hidden_states_of_the_model(types, tiny, texts):
    from transformers import AutoModel, AutoTokenizer

    folder, _, _ = types
    run = load(folder)
    site = run.sites[-1]
    seen = run.survey_of(site).held[site, "ordinary"][Neighbourhoods].finalize()
    tokens, _, rows = seen.complete()
    model, tokenizer = (
        AutoModel.from_pretrained(tiny).eval(),
        AutoTokenizer.from_pretrained(tiny),
    )
    states = {int(token): [] for token in tokens}
    with torch.no_grad():
        for text in texts:
            inputs = tokenizer(text, return_tensors="pt", truncation=True, max_length=512)
            output = model(**inputs).last_hidden_state[0].numpy()
            for token, state in zip(inputs["input_ids"][0].tolist(), output, strict=True):
                if token in states:
                    states[token].append(state)
    assert len(tokens) >= 3 and rows.shape[1] == 16
    for token, kept in zip(tokens, rows, strict=True):
        all_states = np.stack(states[int(token)])
        gaps = np.abs(kept[:, None] - all_states[None]).max(-1).min(1)
        assert gaps.max() < 1e-5  # batches pad, which changes the last bits


def test_every_site_has_correlation_exponents_and_means_with_intervals(types):
    folder, found, _ = types
    whole = [each for each in found if not each.group]
    sites = {each.site for each in whole}
    assert sites == {site for site in load(folder).sites} and len(whole) == 8 * len(sites)
    assert all(each.low <= each.value <= each.high for each in whole)
    assert any(each.group.startswith("frequency ") for each in found)
    shares = [each.value for each in found if each.measure == "tangent-share"]
    assert all(0 < each < 1 for each in shares)
    shown = str(found)
    assert "normal ~ tangent^" in shown and "by frequency: means over types" in shown
    lines = [json.loads(line) for line in found.to_json().splitlines()]
    assert len(lines) == len(found) and lines[0]["rank"] == 2


def test_units_and_engines_change_nothing(types, tiny, forked_pool):
    _, found, corpus = types
    cut = iso.curvature(tiny, corpus, unit=200, **FEW)
    pool = iso.curvature(tiny, corpus, unit=200, engine="pool", workers=2, **FEW)
    assert pool.to_dict() == cut.to_dict()
    # 1e-4: other batches pad otherwise, which changes the last bits of float32 states
    values = [each.value for each in found]
    assert [each.value for each in cut] == pytest.approx(values, rel=1e-4, abs=1e-5)


def test_a_table_of_counts_gives_the_frequencies(types, tiny, tmp_path):
    _, _, corpus = types
    size = json.loads((tiny / "config.json").read_text())["vocab_size"]
    np.save(tmp_path / "counts.npy", np.ones(size))
    with pytest.raises(IsoscopeError, match="the same frequency") as caught:
        iso.curvature(tiny, corpus, frequencies=tmp_path / "counts.npy", **FEW)
    assert caught.value.slug == "curvature-types"


def test_the_page_shows_types_and_reads_them_from_the_run(types, tmp_path):
    folder, _, _ = types
    drawn = draw_curvature(load(folder))
    panel = SECTION.show([Exhibit("types", [], drawn.curves)])
    assert [c.name for c in panel.charts] == ["curvature-types", "curvature-exponent"]
    rows = panel.charts[0].rows()
    assert {row["kind"] for row in rows} == {"type", "band"}
    assert all(not each.group for each in drawn.readings)
    iso.report(folder, tmp_path / "page.html")
    assert "token types" in (tmp_path / "page.html").read_text()


def test_runs_of_types_do_not_merge(types, tmp_path):
    with pytest.raises(MergeError, match="curvature"):
        iso.merge([types[0], types[0]], tmp_path / "merged")


def test_a_run_with_other_types_than_its_summaries_is_refused(types, monkeypatch):
    run = load(types[0])
    known = run.origin.settings.rest["neighbourhoods"]
    monkeypatch.setitem(known, "shares", [2.0] * len(known["tokens"]))
    with pytest.raises(StoreError, match="expected token types"):
        known_types(run)
    monkeypatch.setitem(known, "shares", [0.1] * len(known["tokens"]))
    monkeypatch.setitem(known, "tokens", [each + 1 for each in known["tokens"]])
    with pytest.raises(StoreError, match="not those of its summaries"):
        draw_curvature(run)


@pytest.mark.parametrize(
    ("options", "problem", "slug"),
    [
        ({"rank": 7}, "a rank below 7 for 16 occurrences, got 7", "curvature-rank"),
        ({"occurrences": 15}, "at least 16 and at most 4096", "number-range"),
        ({"occurrences": 500}, "at least 3 types that occur in 500", "curvature-types"),
        ({"sites": "embed.weight"}, "got embedding matrices only", "curvature-sites"),
        ({"sites": "resid.77"}, "resid.77", "unknown-site"),
        ({"model": "no/such/model"}, "no/such/model", "model-not-found"),
    ],
)
def test_bad_input_is_one_clear_error(types, tiny, tmp_path, options, problem, slug):
    chosen = {"model": tiny, "corpus": types[2], **FEW, **options}
    with pytest.raises(IsoscopeError, match=problem) as caught:
        iso.curvature(**chosen, output=tmp_path / "run")
    assert caught.value.slug == slug
    assert not (tmp_path / "run").exists()

"""norm: final norms, outliers and the way through, each as the lab has it."""

import csv
import json
from io import StringIO

import numpy as np
import pytest
import torch

import isoscope as iso
from isoscope.errors import MergeError, StoreError, UndefinedError, UnknownNameError
from isoscope.lab.norm.parameters import final_affines, final_norms, role_outliers
from isoscope.lab.norm.worker import through_norm
from isoscope.store.state import StateReader
from isoscope.study.model import subject_of

FINAL, OUTLIERS, STEPS = "final-norm", "outliers", "steps"


def records_of(found, what):
    return [each for each in found if each.what == what]


def test_it_is_what_the_lab_says(tiny):
    found = iso.norm(tiny, sigmas=2.0)
    assert [e.to_dict() for e in records_of(found, FINAL)] == [
        e.to_dict() for e in final_norms(subject_of(tiny), sigmas=2.0)
    ]
    assert records_of(found, OUTLIERS) == role_outliers(subject_of(tiny), sigmas=2.0)
    assert records_of(found, STEPS) == []
    assert [table.caption for table in found.tables] == [
        f"model {tiny.name}, final norm",
        "dimensions beyond 2 sigma in more than half of the layers",
    ]
    assert "a reference, not a bound" in str(found)


def test_an_rms_norm_has_no_bias_and_it_is_reported(gemma):
    found = iso.norm(gemma)
    (final,) = records_of(found, FINAL)
    assert (final.bias_norm, final.ratio, final.reference) == (None, None, None)
    assert "GemmaRMSNorm has no bias" in str(found)


def test_a_run_is_followed_through_the_norm(tiny, tiny_run):
    found = iso.norm(tiny, run=tiny_run)
    (steps,) = records_of(found, STEPS)
    affines = {s: each for s, (_, each) in final_affines(subject_of(tiny)).items()}
    (slow,) = (e for e in through_norm(iso.load(tiny_run), affines) if e.variant == "all")
    assert steps.to_dict() == slow.to_dict()
    whole = [e for e in iso.read(tiny_run) if e.variant == "all" and not e.group]
    readings = {(e.site, e.measure): e.value for e in whole}
    assert steps["mean-cosine"].before == readings["norm.in", "mean-cosine"]
    assert steps["mean-cosine"].after == readings["norm.out", "mean-cosine"]
    way, gain = found.tables[2:]
    assert way.rows[0][0] == "mean-cosine"
    before, between = readings["norm.in", "mean-cosine"], readings["norm.mid", "mean-cosine"]
    assert way.rows[0][4] == f"{between - before:+.3g}"
    assert [row[0] for row in gain.rows][:3] == [
        "normalised",
        "times the gain",
        "plus the bias",
    ]


def test_variants_and_measures_are_chosen(tiny, tiny_run):
    found = iso.norm(tiny, run=tiny_run, variant="no-special", measures=["participation"])
    assert [each.variant for each in records_of(found, STEPS)] == ["no-special"]
    assert [row[0] for row in found.tables[2].rows] == ["participation"]
    with pytest.raises(UnknownNameError, match="no measure is called 'participatio'"):
        iso.norm(tiny, run=tiny_run, measures=["participatio"])
    with pytest.raises(UnknownNameError, match="no variant is called 'any'"):
        iso.norm(tiny, variant="any")


def test_every_object_says_what_it_is_and_csv_has_one_line_per_number(tiny, tiny_run):
    found = iso.norm(tiny, run=tiny_run)
    objects = [json.loads(line) for line in found.to_json().splitlines()]
    assert {each["model"] for each in objects} == {tiny.name}
    assert list(dict.fromkeys(each["what"] for each in objects)) == [FINAL, OUTLIERS, STEPS]
    lines = list(csv.DictReader(StringIO(found.to_csv())))
    assert set(lines[0]) == {"model", "what", "site", "variant", "name", "value"}
    value = {(line["what"], line["site"], line["name"]): line["value"] for line in lines}
    assert float(value[FINAL, "norm", "gain_norm"]) == objects[0]["gain_norm"]
    after = objects[-1]["steps"][0]["after"]
    assert float(value[STEPS, "norm", f"{objects[-1]['steps'][0]['measure']} after"]) == after
    assert float(value[STEPS, "norm", "gained gain"]) == objects[-1]["gained"]["gain"]
    assert json.loads(value[OUTLIERS, "encoder.layer.0.output.LayerNorm", "bias"]) == next(
        each["norms"][0]["bias"] for each in objects if each.get("role") == "output.LayerNorm"
    )


def test_a_run_of_another_model_is_refused(speaker, tiny_run, tmp_path):
    with pytest.raises(
        MergeError, match=r"cannot follow speaker.* through the run 'tiny'"
    ) as e:
        iso.norm(speaker, run=tiny_run)
    assert e.value.slug == "run-other-model"
    iso.measure(np.eye(5) + 1.0, output=tmp_path / "v")
    with pytest.raises(MergeError, match="of no model"):
        iso.norm(speaker, run=tmp_path / "v")


def test_a_run_without_the_sites_of_the_norm_says_so(tiny, texts, tmp_path):
    iso.survey(tiny, texts, output=tmp_path / "r", tokens=None, sites=["resid.0"])
    with pytest.raises(UndefinedError, match="last block of the run 'r', got none") as raised:
        iso.norm(tiny, run=tmp_path / "r")
    assert raised.value.slug == "no-final-norm"


def test_a_run_is_looked_for_before_a_model_is_loaded():
    with pytest.raises(StoreError, match="no run folder"):
        iso.norm("./no-model", run="./no-run")


def test_a_model_without_any_norm_is_one_error(normless):
    with pytest.raises(UndefinedError, match="after the last block of normless") as raised:
        iso.norm(normless)
    assert raised.value.slug == "no-final-norm"


def test_outliers_are_reported_where_only_the_final_norm_is_missing(speaker):
    loaded = subject_of(speaker).loaded
    loaded.body.ln_f = torch.nn.Identity()
    found = iso.norm(loaded)
    assert records_of(found, FINAL) == [] and records_of(found, OUTLIERS)
    (table,) = found.tables
    assert table.left_out[0].startswith("expected a norm after the last block of speaker")


def test_only_the_rows_between_are_read_from_a_run(tiny, tiny_run, monkeypatch):
    read_at = []
    original = StateReader.survey_of

    def counted(self, site):
        read_at.append(site)
        return original(self, site)

    monkeypatch.setattr("isoscope.store.run.Run.survey", None)  # what reads a whole state
    monkeypatch.setattr(StateReader, "survey_of", counted)
    iso.norm(tiny, run=tiny_run)
    assert set(read_at) == {"norm.mid"}

"""What normalising, gain and bias add, against the rows of a run."""

import numpy as np
import pytest

import isoscope as iso
from isoscope.accumulate import Reservoir
from isoscope.accumulate.survey import variants
from isoscope.api import measure, survey
from isoscope.errors import UndefinedError
from isoscope.lab.norm.parameters import Affine, final_affines, final_norms
from isoscope.lab.norm.worker import cosine_steps, mean_cosine, through_norm
from isoscope.study.model import subject_of


def affines(model):
    return {site: each for site, (_, each) in final_affines(subject_of(model)).items()}


def test_the_mean_cosine_is_that_of_all_pairs():
    rows = np.random.default_rng(0).normal(0.3, 1, size=(12, 5))
    cosines = [
        a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        for i, a in enumerate(rows)
        for j, b in enumerate(rows)
        if i != j
    ]
    assert mean_cosine(rows) == pytest.approx(np.mean(cosines), abs=1e-12)
    assert mean_cosine(np.vstack([rows, np.zeros(5)])) == pytest.approx(np.mean(cosines))
    assert np.isnan(mean_cosine(rows[:1]))


def test_each_step_is_done_to_the_rows():
    rng = np.random.default_rng(1)
    rows, gain, bias = rng.normal(0.4, 1, (50, 6)), rng.normal(1, 0.3, 6), rng.normal(size=6)
    found = cosine_steps(rows, Affine(gain, bias, True))
    assert found.normalised == pytest.approx(mean_cosine(rows))
    assert found.gain == pytest.approx(mean_cosine(rows * gain))
    assert found.gain_and_bias == pytest.approx(mean_cosine(rows * gain + bias))
    centred = (rows - rows.mean(0)) * gain
    assert found.centred_gain_and_bias == pytest.approx(mean_cosine(centred + bias))
    energy = np.mean(np.sum((rows * gain) ** 2, axis=1))
    assert found.zero_mean == pytest.approx(bias @ bias / (bias @ bias + energy))
    assert cosine_steps(rows, Affine(gain, None, False)).zero_mean is None


def test_readings_before_between_and_after_are_those_of_the_run(run, tiny):
    found = through_norm(iso.load(run), affines(tiny))
    assert [(each.site, each.variant) for each in found] == [
        ("norm", "all"), ("norm", "no-special"), ("norm", "no-sink")
    ]  # fmt: skip
    whole = [r for r in iso.load(run).readings if not r.group]
    values = {(r.site, r.variant, r.measure): r.value for r in whole}
    for each in found:
        for step in each.steps:
            sides = (step.before, step.between, step.after)
            for side, value in zip(("in", "mid", "out"), sides, strict=True):
                assert value == values.get((f"norm.{side}", each.variant, step.measure))
    assert found[0]["mean-cosine"].after == values["norm.out", "all", "mean-cosine"]


def test_gain_and_bias_lead_from_between_to_after(run, tiny):
    """All rows fit in the sample, so the steps on it end in the readings."""
    for each in through_norm(iso.load(run), affines(tiny)):
        step = each["mean-cosine"]
        assert each.gained.normalised == pytest.approx(step.between, abs=1e-6)
        assert each.gained.gain_and_bias == pytest.approx(step.after, abs=1e-6)
        assert each.reference == final_norms(subject_of(tiny))[0].reference


def test_the_sample_is_that_of_the_variant(run, tiny):
    held = iso.load(run).survey.held
    counts = {
        name: parts[Reservoir].finalize().count
        for site, names, parts in variants(held)
        if site == "norm.mid"
        for name in names
    }
    found = through_norm(iso.load(run), affines(tiny))
    assert {each.variant: each.gained.n for each in found} == counts
    assert counts["no-special"] < counts["all"]


def test_without_the_model_there_are_readings_only(run):
    found = through_norm(iso.load(run))
    assert found[0].gained is None
    assert found[0].reference is None
    assert found[0].to_dict()["steps"]


def test_a_run_without_norm_sites_says_so(tiny, texts, tmp_path):
    survey(tiny, texts[:10], output=tmp_path / "resid", sites=["resid.0"], tokens=None)
    measure(np.random.default_rng(0).normal(size=(50, 4)), output=tmp_path / "rows")
    for name in ("resid", "rows"):
        with pytest.raises(UndefinedError, match=f"the run '{name}', got none") as raised:
            through_norm(iso.load(tmp_path / name))
        assert raised.value.slug == "no-final-norm"


@pytest.mark.real
@pytest.mark.timeout(300)
def test_minilm_owes_its_low_output_cosine_to_its_gain(minilm, tmp_path):
    """One dimension carries the cosine between, and the gain of that dimension is small."""
    given = {"sites": ["norm"], "measures": ["mean-cosine", "isoscore"], "tokens": 1500}
    survey(minilm, output=tmp_path / "run", **given)
    each = through_norm(iso.load(tmp_path / "run"), affines(minilm))[0]
    step = each["mean-cosine"]
    assert step.before == pytest.approx(step.between, abs=0.01)
    assert step.between > 0.2 > 0.1 > step.after > each.reference
    assert each.gained.gain < 0.5 * each.gained.normalised

"""The whole experiment, small: means over 20 initialisations beside their closed forms."""

import json
from math import sqrt

import numpy as np
import pytest

import isoscope as iso
from isoscope.display.page.section import Exhibit
from isoscope.errors import IsoscopeError, StoreError
from isoscope.lab.drift.results import (
    DriftFixedPoint,
    DriftPoint,
    results_of_run,
)
from isoscope.lab.drift.section import SECTION, draw_drift
from isoscope.lab.drift.spec import DriftSpec
from isoscope.measures.interval import exact_quantile
from isoscope.store import load

TINY = {"width": 16, "heads": 2, "tokens": 8, "initialisations": 2}


def points(found, arch, measure, at="input"):
    keys = (arch, at, measure)
    return [e for e in found if isinstance(e, DriftPoint) and (e.arch, e.at, e.measure) == keys]


def test_means_are_near_the_closed_forms(drift_run):
    """3 %, and 3.5 standard errors of 20 initialisations of blocks this small."""
    off = [
        (each.arch, each.norm, each.measure, each.mean, each.closed)
        for each in drift_run[1]
        if isinstance(each, DriftPoint)
        and each.closed is not None
        and abs(each.mean - each.closed) > 0.03 * each.closed + 3.5 * each.sd / sqrt(each.n)
    ]
    assert off == []


def test_drift_sharpens_post_norm_attention_and_flattens_pre_norm(drift_run):
    _, found = drift_run
    bert, gpt2, vit = (
        [each.mean for each in points(found, arch, "score-spread")]
        for arch in ("bert", "gpt2", "vit")
    )
    assert bert == sorted(bert) and bert[-1] > 5 * bert[0]
    for spreads in (gpt2, vit):
        assert spreads == sorted(spreads, reverse=True) and spreads[-1] < 0.2 * spreads[0]


def test_intervals_are_students(drift_run):
    (first, *_) = points(drift_run[1], "bert", "cosine-out")
    values = [
        each.value
        for each in load(drift_run[0]).readings
        if each.measure == "cosine-out" and each.group.startswith("arch=bert,at=input,norm=0.0")
    ]
    assert len(values) == first.n == 20
    assert first.mean == pytest.approx(np.mean(values), rel=1e-12)
    assert first.sd == pytest.approx(np.std(values, ddof=1), rel=1e-12)
    reach = exact_quantile(19, outside=0.01) * first.sd * sqrt(1 + 1 / 20)
    assert first.next_high - first.mean == pytest.approx(reach)
    assert first.high - first.mean == pytest.approx(2.093 * first.sd / sqrt(20), rel=1e-3)


def test_only_post_norm_blocks_have_a_fixed_point(drift_run):
    found = {e.arch: e for e in drift_run[1] if isinstance(e, DriftFixedPoint)}
    bert = found["bert"]
    assert bert.found >= 18 and abs(bert.mean - bert.closed) < 3.5 * bert.sd / sqrt(bert.n)
    assert found["vit"].closed is None and found["gpt2"].closed is None
    assert "no fixed point of gpt2, vit" in drift_run[1].remarks[0]
    assert "no fixed point" in str(drift_run[1])


def test_a_run_folder_gives_the_same_results_back(drift_run):
    folder, found = drift_run
    again, shape = results_of_run(load(folder))
    assert again.to_dict() == found.to_dict()
    assert (shape.width, shape.inner) == (64, 256)
    run = load(folder)
    run.origin.settings.rest.pop("shape")
    with pytest.raises(StoreError, match="expected initialisations of drift in 'small'"):
        results_of_run(run)


def test_both_engines_and_a_run_that_is_resumed_give_the_same(tmp_path):
    options = {**TINY, "arch": "bert,llama", "norms": [0, 8]}
    here = iso.drift(**options)
    pool = iso.drift(**options, engine="pool", workers=2)
    assert pool.to_dict() == here.to_dict()

    class Stop(Exception):
        pass

    def stop(done, _of):
        if done == 2:
            raise Stop

    with pytest.raises(Stop):
        iso.drift(**options, output=tmp_path / "run", progress=stop)
    done = []
    again = iso.drift(
        **options, output=tmp_path / "run", progress=lambda n, _of: done.append(n)
    )
    assert again.to_dict() == here.to_dict()


def test_drift_after_the_norm_and_a_stack():
    found = iso.drift(
        arch="gpt2", at="norm-bias,key-bias", norms=[0, 32], blocks=2, std=0.1, **TINY
    )
    rows = [e for e in found if isinstance(e, DriftPoint)]
    assert {(each.at, each.block) for each in rows} == {
        (at, block) for at in ("norm-bias", "key-bias") for block in (0, 1)
    }
    assert not any(isinstance(each, DriftFixedPoint) for each in found)
    before, _, after, _ = (e.mean for e in points(found, "gpt2", "score-spread", "norm-bias"))
    assert after > 2 * before
    before, _, after, _ = (e.mean for e in points(found, "gpt2", "score-spread", "key-bias"))
    assert after == pytest.approx(before, rel=1e-4)


def test_one_initialisation_has_no_intervals():
    found = iso.drift(arch="vit", norms=[1], **{**TINY, "initialisations": 1})
    assert all(e.sd is None and e.low is None and e.next_low is None for e in found[:8])
    assert "NaN" not in found.to_json()


def test_every_format_has_every_record(drift_run):
    _, found = drift_run
    lines = [json.loads(line) for line in found.to_json().splitlines()]
    assert [line["what"] for line in lines].count("point") == 3 * 4 * 8
    assert [line["what"] for line in lines].count("fixed-point") == 3
    assert len(found.to_csv().splitlines()) == 1 + len(lines)
    assert len(found.to_pandas()) == len(found.to_polars()) == len(lines)
    assert found.to_latex() and "closed forms" in found.to_markdown()


@pytest.mark.parametrize(
    ("options", "problem", "slug"),
    [
        ({"arch": "bart"}, "no arch is called 'bart'", "unknown-arch"),
        ({"at": "inputs"}, "no at is called 'inputs'", "unknown-at"),
        ({"heads": 5}, "a width that 5 heads divide", "drift-width"),
        ({"initialisations": 0}, "at least 1 as initialisations, got 0", "number-too-small"),
        ({"tokens": 1}, "at least 2 as tokens, got 1", "number-too-small"),
        ({"norms": [-1.0]}, "at least 0 as norms, got -1.0", "number-range"),
        ({"norms": [float("nan")]}, "at least 0 as norms, got nan", "number-range"),
        ({"norms": [float("inf")]}, "expected finite numbers as norms", "drift-norms"),
        ({"norms": []}, "expected finite numbers as norms", "drift-norms"),
        ({"std": float("nan")}, "as std, got nan", "number-range"),
        ({"arch": "bert", "at": "norm-bias"}, "no norm in front", "drift-place"),
    ],
)
def test_bad_input_is_one_clear_error(tmp_path, options, problem, slug):
    with pytest.raises(IsoscopeError, match=problem) as caught:
        iso.drift(**{**TINY, **options}, output=tmp_path / "run")
    assert caught.value.slug == slug
    assert not (tmp_path / "run").exists()


def test_the_default_norms_and_sizes_are_those_of_the_published_experiment():
    spec = DriftSpec()
    assert (spec.shape.width, spec.shape.heads, spec.shape.inner) == (768, 12, 3072)
    assert (spec.tokens, spec.std, spec.initialisations) == (512, 0.02, 20)


# --- the page -----------------------------------------------------------------------------


def test_the_section_draws_points_in_front_of_lines(drift_run):
    drawn = draw_drift(load(drift_run[0]))
    panel = SECTION.show([Exhibit("small", [], drawn.curves)])
    assert [chart.name for chart in panel.charts] == [
        "drift-cosine-in", "drift-cosine-attention", "drift-cosine-out", "drift-mean-norm-out",
        "drift-score-spread", "drift-attention-entropy", "drift-largest-probability",
    ]  # fmt: skip
    rows = panel.charts[4].rows(at="input", block="0")
    means = {(r["arch"], r["norm"]): r["value"] for r in rows if r["kind"] == "mean"}
    lines = {(r["arch"], r["norm"]): r["value"] for r in rows if r["kind"] == "closed"}
    assert len(means) == 12 and means.keys() < lines.keys()
    assert all(lines[key] == pytest.approx(value, rel=0.1) for key, value in means.items())
    assert SECTION.show([Exhibit("other", [])]) is None
    texts = [f"{each.figure} {each.text}" for each in drawn.findings]
    assert any(text.startswith("×") and "bert (post-norm)" in text for text in texts)
    assert any(text.startswith("no fixed point of vit") for text in texts)


def test_a_report_and_a_figure_are_made_of_a_run(drift_run, tmp_path):
    page = iso.report(drift_run[0], tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert '<section id="drift"' in text and "All points as a table" in text
    assert page is not None
    iso.figure(drift_run[0], tmp_path / "drift.svg", kind="drift", measures=["score-spread"])
    assert "Spread of scores" in (tmp_path / "drift.svg").read_text()


# --- the table of the notes, at full size -------------------------------------------------
NOTES = {  # post-norm, d = 768, 512 tokens, one initialisation
    0.0: (0.000, 0.856, 0.013, 0.306, 0.992, 0.005),
    10.0: (0.115, 0.997, 0.132, 0.323, 0.992, 0.005),
    27.7: (0.498, 1.000, 0.507, 0.425, 0.985, 0.007),
    100.0: (0.929, 1.000, 0.935, 1.125, 0.900, 0.033),
    300.0: (0.992, 1.000, 0.992, 3.448, 0.428, 0.376),
    1000.0: (0.999, 1.000, 0.999, 11.475, 0.052, 0.875),
}
IN_NOTES = (
    "cosine-in", "cosine-attention", "cosine-out", "score-spread", "attention-entropy",
    "largest-probability",
)  # fmt: skip
DIGITS = 0.0005  # half of the last digit that the notes print


@pytest.mark.slow
def test_the_table_of_the_notes_lies_in_the_prediction_intervals():
    found = iso.drift(arch="bert", norms=list(NOTES))
    outside = []
    for norm, row in NOTES.items():
        for measure, value in zip(IN_NOTES, row, strict=True):
            (each,) = [e for e in points(found, "bert", measure) if e.norm == norm]
            if not each.next_low - DIGITS <= value <= each.next_high + DIGITS:
                outside.append((norm, measure, value, each.next_low, each.next_high))
    assert outside == []

"""The whole experiment, small: means over 20 initialisations beside their closed forms."""

import json
from math import sqrt

import numpy as np
import pytest

import isoscope as iso
from isoscope.errors import StoreError
from isoscope.lab.drift.results import (
    DriftFixedPoint,
    DriftPoint,
    results_of_run,
)
from isoscope.measures.interval import exact_quantile
from isoscope.store import load


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


def test_every_format_has_every_record(drift_run):
    _, found = drift_run
    lines = [json.loads(line) for line in found.to_json().splitlines()]
    assert [line["what"] for line in lines].count("point") == 3 * 4 * 8
    assert [line["what"] for line in lines].count("fixed-point") == 3
    assert len(found.to_csv().splitlines()) == 1 + len(lines)
    assert len(found.to_pandas()) == len(found.to_polars()) == len(lines)
    assert found.to_latex() and "closed forms" in found.to_markdown()


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

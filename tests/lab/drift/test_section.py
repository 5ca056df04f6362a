"""The section of drift: points in front of lines, findings, a page and a figure."""

import pytest

import isoscope as iso
from isoscope.display.page.section import Exhibit
from isoscope.lab.drift.section import SECTION, draw_drift
from isoscope.store import load


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

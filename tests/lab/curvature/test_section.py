"""The section of curvature: points in front of lines, findings, a page and a figure."""

import pytest

import isoscope as iso
from isoscope.display.page.section import Exhibit
from isoscope.lab.curvature.section import SECTION, draw_curvature
from isoscope.store import load


def test_points_stand_in_front_of_closed_forms_and_predictions(curvature_run):
    drawn = draw_curvature(load(curvature_run[0]))
    panel = SECTION.show([Exhibit("small", [], drawn.curves)])
    assert [chart.name for chart in panel.charts] == [
        "curvature-energy", "curvature-ratio", "curvature-gradient", "curvature-bias",
    ]  # fmt: skip
    rows = panel.charts[1].rows()
    kinds = {row["kind"] for row in rows}
    assert kinds == {"mean", "closed", "leading"}
    line = [(r["at"], r["value"]) for r in rows if r["kind"] == "leading"]
    by_manifold = [value / at for at, value in line]
    assert len({round(each, 9) for each in by_manifold}) == 2  # c t: parabola, and the others
    assert SECTION.show([Exhibit("other", [])]) is None
    texts = [f"{each.figure} {each.text}" for each in drawn.findings]
    assert any(text.startswith("t^1.0") and "on a sphere" in text for text in texts)
    assert any(text.startswith("100 %") and "not bounded" in text for text in texts)


def test_a_report_and_a_figure_are_made_of_a_run(curvature_run, tmp_path):
    pytest.importorskip("altair")
    iso.report(curvature_run[0], tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert '<section id="curvature"' in text and "All points as a table" in text
    iso.figure(curvature_run[0], tmp_path / "c.svg", kind="curvature")
    assert "Normal over tangent" in (tmp_path / "c.svg").read_text()

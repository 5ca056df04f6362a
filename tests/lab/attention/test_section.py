"""The section of heads: a map, the curve of a head, and what is said of both."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from isoscope.display.page.figure import draw_figure
from isoscope.display.page.section import Exhibit
from isoscope.display.section.profiles import show_layers
from isoscope.lab.attention.section import SECTION, draw_attention, show
from isoscope.types import HeadCurve, Reading

BOTH = ("documents", "positions")


def reading(site, measure, value, group="", step=None):
    return Reading("a", site, "all", group, step, measure, value, value - 1, value + 1, 9, 4)


def exhibit(step=None, early=True):
    readings = [
        reading(f"head.{layer}.{head}", measure, layer + head / 10, group, step)
        for layer in range(2)
        for head in range(3)
        for measure, group in (
            ("query-key-cosine", ""),
            ("score-spread", ""),
            ("key-norm", ""),
            *([("query-key-cosine", "before-rotation")] if early else []),
        )
    ]
    readings += [reading("resid.0", "mean-cosine", 0.5, step=step)]
    curves = [
        HeadCurve("head.1.2", "all", "score-spread", along, ("0", "1"), np.array([1.0, 2.0]))
        for along in BOTH
    ]
    return Exhibit("a", readings, curves)


def test_a_map_has_a_cell_per_head_and_a_head_its_curves():
    panel = show([exhibit()])
    (chart,) = panel.charts
    assert [switch.name for switch in panel.switches] == ["measure"]
    assert panel.positions["measure"] == "query-key-cosine"
    rows = chart.rows(**panel.positions)
    assert [(r["layer"], r["head"], r["value"]) for r in rows] == [
        (layer, head, pytest.approx(layer + head / 10))
        for layer in range(2)
        for head in range(3)
    ]
    rows = chart.rows(measure="score-spread")
    assert len([r for r in rows if r["kind"] == "map"]) == 6
    curves = {along: [r["value"] for r in rows if r["along"] == along] for along in BOTH}
    assert curves == {"documents": [1.0, 2.0], "positions": [1.0, 2.0]}
    early = chart.rows(measure="query-key-cosine, before rotation")
    assert len([r for r in early if r["kind"] == "map"]) == 6


def test_what_has_a_sign_is_coloured_about_zero():
    (chart,) = show([exhibit()]).charts
    specs = {
        name: chart.spec_at({"measure": name}) for name in ("query-key-cosine", "score-spread")
    }
    assert "vconcat" not in specs["query-key-cosine"]  # no curves: no empty axes
    scales = {
        name: each.get("vconcat", [each])[0]["encoding"]["color"]["scale"]
        for name, each in specs.items()
    }
    assert all(each["usermeta"]["width"] == 620 for each in specs.values())
    assert scales["query-key-cosine"]["domainMid"] == 0
    assert scales["score-spread"] == {"range": "heatmap"}


def test_a_click_chooses_a_head_and_heads_are_ordered_by_number_or_value():
    (chart,) = show([exhibit()]).charts
    params = {each["name"]: each for each in chart.spec["params"]}
    assert params["head"]["select"]["fields"] == ["site"]
    assert params["order"]["bind"]["options"] == ["number", "value"]
    cells, curves = chart.spec["vconcat"]
    assert any("rank" in str(each) for each in cells["transform"])
    assert len(curves["hconcat"]) == 2
    for each in curves["hconcat"]:
        assert {"filter": {"param": "head"}} in each["layer"][0]["transform"]
        assert each["layer"][2]["encoding"]["text"]["field"] == "site"  # whose curve it is


def test_steps_are_a_curve_of_their_own_with_intervals(monkeypatch):
    readings = [each for step in range(0, 50, 10) for each in exhibit(step).readings]
    run = SimpleNamespace(readings=readings, sites=())
    drawn = draw_attention(run)
    assert {each.step for each in drawn.readings} == {40}
    panel = show([Exhibit("a", drawn.readings, drawn.curves)])
    rows = panel.charts[0].rows(**panel.positions)
    curve = [r for r in rows if r["kind"] == "curve" and r["site"] == "head.0.1"]
    assert [r["at"] for r in curve] == ["0", "10", "20", "30", "40"]
    assert (curve[0]["low"], curve[0]["high"]) == pytest.approx((-0.9, 1.1))
    assert len([r for r in rows if r["kind"] == "map"]) == 6  # of the last step
    monkeypatch.setattr("isoscope.lab.attention.section.POINTS", 3 * 6)
    thinner = draw_attention(run)
    assert {each.at for each in thinner.curves} == {("0", "20", "40")}
    assert {(each.measure, each.group) for each in thinner.curves} == {
        ("query-key-cosine", "before-rotation")
    }
    assert "curves of heads have 3 of 5 steps, for room" in thinner.remarks
    assert any("over steps: query-key-cosine, score-spread" in t for t in thinner.remarks)


def test_keys_that_are_shared_are_counted_once():
    same = [reading(f"head.0.{n}", "key-norm", n // 2) for n in range(4)]
    same += [reading(f"head.0.{n}", "query-key-cosine", n / 4) for n in range(4)]
    assert any("4 heads, 2 keys" in text for text in show([Exhibit("a", same)]).lead)


def test_runs_without_heads_have_no_such_section_and_heads_no_profile():
    assert show([Exhibit("a", [reading("resid.0", "mean-cosine", 0.5)])]) is None
    assert SECTION.first
    panel = show_layers([exhibit()])
    assert {c.name for c in panel.charts} == {"layers-mean-cosine"}


@pytest.mark.parametrize("width", [84.0, 174.0])
@pytest.mark.parametrize("measure", ["query-key-cosine", "score-spread"])
def test_it_is_drawn_on_paper_and_fits(width, measure):
    panel = show([exhibit()])
    svg = draw_figure(panel.charts, {**panel.positions, "measure": measure}, width)
    assert svg.startswith("<svg")
    outer, inner = (float(n) for n in re.findall(r'<svg\b[^>]*?width="([\d.]+)"', svg)[:2])
    assert 0.8 * outer < inner <= outer + 0.5

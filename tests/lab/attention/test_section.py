"""The section of heads: a map, the curve of a head, and what is said of both."""

import numpy as np
import pytest

from isoscope.display.page.figure import draw_figure
from isoscope.display.page.section import Exhibit
from isoscope.display.section.profiles import show_layers
from isoscope.lab.attention.section import SECTION, show
from isoscope.types import HeadCurve, Reading


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
        for along in ("documents", "positions")
    ]
    return Exhibit("a", readings, curves)


def test_a_map_has_a_cell_per_head_and_a_head_its_curve():
    panel = show([exhibit()])
    (chart,) = panel.charts
    assert [switch.name for switch in panel.switches] == ["measure", "stage", "along"]
    assert panel.positions["measure"] == "query-key-cosine"
    rows = chart.rows(**panel.positions)
    assert [(r["layer"], r["head"], r["value"]) for r in rows] == [
        (layer, head, pytest.approx(layer + head / 10))
        for layer in range(2)
        for head in range(3)
    ]
    rows = chart.rows(**panel.positions | {"measure": "score-spread", "along": "positions"})
    assert [r["value"] for r in rows if r["kind"] == "curve"] == [1.0, 2.0]
    assert len([r for r in rows if r["kind"] == "map"]) == 6
    before = chart.rows(
        **panel.positions | {"measure": "score-spread", "stage": "before-rotation"}
    )
    assert len([r for r in before if r["kind"] == "map"]) == 6  # it has no other


def test_a_click_chooses_a_head_and_heads_are_ordered_by_number_or_value():
    (chart,) = show([exhibit()]).charts
    params = {each["name"]: each for each in chart.spec["params"]}
    assert params["head"]["select"]["fields"] == ["site"]
    assert params["order"]["bind"]["options"] == ["number", "value"]
    cells, curve = chart.spec["vconcat"]
    assert any("rank" in str(each) for each in cells["transform"])
    assert {"filter": {"param": "head"}} in curve["transform"]


def test_steps_are_a_curve_of_their_own():
    both = Exhibit("a", [*exhibit(0).readings, *exhibit(100).readings])
    panel = show([both])
    rows = panel.charts[0].rows(**panel.positions)
    curve = [r for r in rows if r["kind"] == "curve" and r["site"] == "head.0.1"]
    assert [r["at"] for r in curve] == ["0", "100"]
    assert len([r for r in rows if r["kind"] == "map"]) == 6  # of the last step


def test_keys_that_are_shared_are_counted_once():
    same = [reading(f"head.0.{n}", "key-norm", n // 2) for n in range(4)]
    same += [reading(f"head.0.{n}", "query-key-cosine", n / 4) for n in range(4)]
    assert any("4 heads, 2 keys" in text for text in show([Exhibit("a", same)]).lead)


def test_runs_without_heads_have_no_such_section_and_heads_no_profile():
    assert show([Exhibit("a", [reading("resid.0", "mean-cosine", 0.5)])]) is None
    assert SECTION.first
    panel = show_layers([exhibit()])
    assert {c.name for c in panel.charts} == {"layers-mean-cosine"}


def test_it_is_drawn_on_paper():
    panel = show([exhibit()])
    assert draw_figure(panel.charts, panel.positions, 400.0).startswith("<svg")

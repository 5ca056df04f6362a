"""Causes as stacked bars."""

import math

import altair as alt

from isoscope.report.page.exhibit import Exhibit
from isoscope.report.section.causes import show


def test_shares_of_a_site_add_up_and_stand_in_order(demo):
    panel = show([demo])
    (chart,) = panel.charts
    alt.Chart.from_dict(chart.spec, validate=True)
    rows = [r for r in chart.rows() if r["site"] == "resid.1"]
    assert [r["cause"] for r in rows] == ["sinks", "dimensions", "mean"]
    assert math.isclose(sum(r["share"] for r in rows), 1.0)
    assert [r["order"] for r in rows] == [0, 1, 4]
    color = chart.spec["encoding"]["color"]
    assert color["legend"]["values"] == ["sinks", "dimensions", "mean"]
    assert len(color["scale"]["domain"]) == 5  # so that a cause has one colour on every page


def test_the_same_shares_stand_in_a_table(demo):
    body = show([demo]).body
    assert "30 %" in body and "resid.1" in body


def test_without_causes_there_is_no_section():
    assert show([Exhibit("a", [])]) is None

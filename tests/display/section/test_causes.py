"""Causes as bars, one chart per scale."""

import math
from dataclasses import replace

import altair as alt
import pytest

import isoscope as iso
from isoscope.display.page.section import Exhibit
from isoscope.display.section.causes import SECTION, show
from isoscope.types import CAUSE_ORDER, CauseShares


def test_what_adds_up_is_stacked_and_what_does_not_stands_side_by_side(demo):
    removal, dependence = show([demo]).charts
    for chart in (removal, dependence):
        alt.LayerChart.from_dict(chart.spec, validate=True)
    rows = [r for r in dependence.rows() if r["site"] == "resid.1"]
    assert [r["cause"] for r in rows] == ["frequency", "mean"]
    assert math.isclose(sum(r["share"] for r in rows), 1.0)
    assert [r["order"] for r in rows] == [2, 4]
    assert [r["text"] for r in rows] == ["40", "60"]
    color = dependence.spec["layer"][0]["encoding"]["color"]
    assert color["legend"]["values"] == ["frequency", "mean"]
    assert len(color["scale"]["domain"]) == 5  # so that a cause has one colour on every page
    rows = [r for r in removal.rows() if r["site"] == "resid.1"]
    assert [r["cause"] for r in rows] == ["sinks", "dimensions"]
    bars, whiskers = (layer["encoding"] for layer in removal.spec["layer"])
    assert bars["y"]["stack"] is None and bars["xOffset"]["field"] == "cause"
    assert (whiskers["y"]["field"], whiskers["y2"]["field"]) == ("low", "high")


def test_no_bar_of_a_real_survey_stacks_shares_of_two_scales(surveyed):
    stacked = [
        {row["cause"] for row in chart.rows()}
        for chart in show([surveyed]).charts
        if chart.spec["layer"][0]["encoding"]["y"].get("stack", "zero") is not None
    ]
    assert stacked == [{"frequency", "position", "mean"}]


def test_it_says_in_words_what_each_number_answers(demo):
    lead = show([demo]).lead
    assert "not to be added" in lead[0]
    assert lead[1].startswith("By removal") and lead[2].startswith("By dependence")
    curve = demo.curves_of(CauseShares)[0]
    alone = replace(curve, causes=curve.causes[:2])
    panel = show([Exhibit("a", [], [alone])])
    assert [chart.name for chart in panel.charts] == ["causes-removal"]
    assert len(panel.lead) == 2


def test_the_same_shares_stand_in_tables_with_their_intervals(demo):
    body = show([demo]).body
    assert "30 [20, 40]" in body and "resid.1" in body
    assert "15 (30%)" in body and "0.125" in body
    assert "40 [30, 50] (45, 35)" in body
    assert body.count("<table") == 2
    assert "12 of 900 rows" not in body  # no sink was named


def test_rounding_below_zero_is_nothing(demo):
    curve = demo.curves_of(CauseShares)[0]
    pairs = zip(curve.causes, (-3e-10, 0.4, -2e-5, 1.0), strict=True)
    causes = tuple(replace(each, share=share) for each, share in pairs)
    panel = show([Exhibit("a", [], [replace(curve, causes=causes)])])
    removal, dependence = panel.charts
    assert [r["share"] for r in removal.rows()] == [0.0, 0.4]
    assert [r["share"] for r in dependence.rows()] == [0.0, 1.0]
    assert "-0" not in panel.body
    legend = removal.spec["layer"][0]["encoding"]["color"]["legend"]
    assert legend["values"] == ["dimensions"]


def test_what_could_not_be_reported_is_reported_with_its_sites(demo):
    curves = [
        replace(c, warnings=("frequency cannot be determined",))
        for c in demo.curves_of(CauseShares)[:2]
    ]
    lead = show([Exhibit("a", [], curves)]).lead
    assert lead[3] == "Frequency cannot be determined (embed, resid.0)."


@pytest.mark.parametrize("name", ["tiny_run", "sunken"])
def test_rows_of_a_real_survey_are_what_explain_says(request, name):
    from isoscope.exhibit.exhibit import exhibits

    run = request.getfixturevalue(name)
    told = {(c.site, c.cause): c for c in iso.explain(run)}
    charts = show(exhibits(run)).charts
    rows = [row for chart in charts for row in chart.rows()]
    assert {(r["site"], r["cause"]) for r in rows} == set(told)
    assert {r["cause"] for r in rows} == set(CAUSE_ORDER)
    for row in rows:
        cause = told[row["site"], row["cause"]]
        assert row["share"] == pytest.approx(cause.share, abs=5e-4)
        assert row["cosine"] == cause.mean_cosine
        assert (row["first"], row["falls_to"]) == (cause.first, cause.falls_to)
        if cause.low is not None:
            assert (row["low"], row["high"]) == (cause.low, cause.high)
    rows = charts[-1].rows()
    for site in {r["site"] for r in rows}:
        assert sum(r["share"] for r in rows if r["site"] == site) == pytest.approx(1, abs=2e-3)


def test_sinks_of_a_real_survey_are_named(sunken):
    from isoscope.exhibit.exhibit import exhibits

    panel = show([each.printable for each in exhibits(sunken)])
    rows = {r["site"]: r for r in panel.charts[0].rows() if r["cause"] == "sinks"}
    assert rows["embed"]["detail"].startswith("40 of ")
    assert "at position 0" in rows["embed"]["detail"]
    assert "&lt;/script&gt;&lt;img/src" in panel.body and "<img" not in panel.body


def test_without_causes_there_is_no_section():
    assert show([Exhibit("a", [])]) is None


def test_two_runs_are_side_by_side(exhibits):
    panel = show([exhibits.exhibit(name) for name in ("one", "two")])
    assert "run" not in panel.positions
    shown = [(each.name, {row["run"] for row in each.rows()}) for each in panel.charts]
    assert shown == [
        ("causes-removal-0", {"one"}),
        ("causes-removal-1", {"two"}),
        ("causes-0", {"one"}),
        ("causes-1", {"two"}),
    ]
    assert (
        show([exhibits.exhibit(n) for n in ("one", "two", "three")]).positions["run"] == "one"
    )


def test_a_page_of_one_site_has_the_table_and_no_chart_of_one_bar(demo):
    alone = replace(demo, curves=[replace(demo.curves_of(CauseShares)[0], site="rows")])
    panel = SECTION.on_page([alone])
    assert panel.charts == ()
    assert "<details>" not in panel.body and "outlier dimensions" in panel.body
    assert SECTION.on_page([demo]).charts
    assert show([alone]).charts  # a figure for a paper may still be drawn

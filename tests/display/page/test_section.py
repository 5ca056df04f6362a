"""What a section receives and returns."""

from dataclasses import replace

from isoscope.display.page.section import Chart, Panel, Switch
from isoscope.types import (
    CauseShares,
    DimensionScores,
    Reading,
    SpectrumCurve,
    SweepCell,
    SweepGrid,
)


def test_curves_are_found_by_kind_and_readings_by_name(demo):
    assert {each.site for each in demo.curves_of(SpectrumCurve)} == {*demo.sites}
    assert demo.reading("isoscore", "embed").value == 0.2
    assert demo.reading("isoscore", "nowhere") is None
    assert demo.sites[0] == "embed"
    assert len(demo.curves_of(CauseShares)) == len(demo.sites)


def test_a_reading_of_a_group_is_not_that_of_the_site(demo):
    one = replace(demo.reading("isoscore", "embed"), group="rare", value=9.0)
    assert (
        replace(demo, readings=[*demo.readings, one]).reading("isoscore", "embed").value == 0.2
    )


def test_readings_that_are_no_numbers_are_skipped_and_counted(demo):
    bad = Reading("a", "rows", "all", "", None, "alpha", float("nan"), None, None, 9, 3)
    shown = replace(demo, readings=[bad, *demo.readings]).finite
    assert len(shown.readings) == len(demo.readings)
    assert "1 of" in shown.remarks[-1]
    assert demo.finite == demo


def test_an_interval_that_is_no_number_is_no_interval(demo):
    bad = replace(demo.reading("isoscore", "embed"), low=float("nan"), high=float("inf"))
    (shown,) = replace(demo, readings=[bad]).finite.readings
    assert (shown.value, shown.low, shown.high) == (bad.value, None, None)


def test_words_of_curves_are_written_out_too(exhibits):
    whole = exhibits.Exhibit("a", [], list(exhibits.curves_of("a\x1b", "all")))
    (curve,) = whole.curves_of(CauseShares)
    words = tuple(replace(each, detail="\x1b[2J") for each in curve.causes)
    bad = exhibits.Exhibit("a", [], [replace(curve, causes=words, warnings=("\x1b",))])
    (shown,) = bad.printable.curves
    assert shown.site == r"a\x1b" and shown.warnings == (r"\x1b",)
    assert {each.detail for each in shown.causes} == {r"\x1b[2J"}
    assert [each.share for each in shown.causes] == [each.share for each in curve.causes]


def test_numbers_of_curves_are_not_copied(exhibits):
    whole = exhibits.Exhibit("a", [], list(exhibits.curves_of("a\x1b", "all")))
    (before,), (after,) = (e.curves_of(DimensionScores) for e in (whole, whole.printable))
    assert after.score is before.score and after.site == r"a\x1b"


def test_words_deep_in_a_sweep_are_written_out(exhibits):
    cell = SweepCell("twonn\x1b", "resid", 0.0, None, 0.5, None)
    grid = SweepGrid("task", "all", "\x1b[2J", "accuracy", "istar", 0.5, True, (), (cell,))
    (shown,) = exhibits.Exhibit("a", [], [grid]).printable.curves
    assert shown.task == r"\x1b[2J" and shown.cells[0].measure == r"twonn\x1b"


def test_names_that_would_be_obeyed_are_written_out(exhibits):
    shown = exhibits.exhibit("a\x1b[2J\u202eb").printable
    assert shown.name == r"a\x1b[2J\u202eb"
    assert shown.readings[0].run == shown.name
    assert shown.levels["embed", "all", "isoscore"] == 1.0


CHART = Chart("c", "C", {}, {"variant": ["all", "no-sink"], "value": [1, 2]}, "a chart")


def test_an_estimate_is_the_debiased_one_where_there_is_one(demo):
    for name, expected in (("isoscore", "isoscore-debiased"), ("participation",) * 2):
        found = demo.estimate(name, "resid.1")
        assert found is demo.reading(expected, "resid.1")
    plain = replace(
        demo, readings=[r for r in demo.readings if not r.measure.endswith("debiased")]
    )
    assert plain.estimate("isoscore", "resid.1").measure == "isoscore"
    assert plain.estimate("isoscore", "nowhere") is None


def test_a_switch_keeps_the_rows_that_have_its_value():
    assert CHART.rows(variant="no-sink") == [{"variant": "no-sink", "value": 2}]
    assert len(CHART.rows()) == 2


def test_a_chart_without_the_column_does_not_obey():
    assert len(CHART.rows(form="plain")) == 2


def test_a_chart_of_one_estimate_has_its_title_and_its_rows():
    columns = {"form": ["plain", "debiased"], "value": [1, 2]}
    forms = {"plain": ("isoscore", "P"), "debiased": ("isoscore-debiased", "D")}
    both = Chart("c", "D", {}, columns, "a chart", forms=forms)
    plain = both.in_form("plain")
    assert plain.title == "P"
    assert plain.rows(form="debiased") == [{"value": 1}]
    assert CHART.in_form("plain") is CHART


def test_a_panel_knows_where_its_switches_stand():
    switch = Switch("variant", "Rows", (("all", "all"), ("no-sink", "no sinks")), "all")
    assert Panel(switches=(switch,)).positions == {"variant": "all"}

"""Layer profile and series: charts tested on their rows."""

import altair as alt

from isoscope.display.page.section import Exhibit
from isoscope.display.section.profiles import LAYERS, show_layers, show_series
from isoscope.types import Reading


def at(chart, site, **chosen):
    (row,) = [r for r in chart.rows(**chosen) if r["site"] == site]
    return row


def test_every_row_is_a_reading(demo):
    panel = show_layers([demo])
    chart = next(c for c in panel.charts if c.name == "layers-isoscore")
    alt.LayerChart.from_dict(chart.spec, validate=True)
    for variant in ("all", "no-sink"):
        for form, measure in (("plain", "isoscore"), ("debiased", "isoscore-debiased")):
            row = at(chart, "resid.1", variant=variant, form=form)
            reading = demo.reading(measure, "resid.1", variant)
            assert (row["value"], row["low"], row["high"]) == (
                reading.value,
                reading.low,
                reading.high,
            )
            assert row["level"] == 1.0
            assert row["n"] == reading.n


def test_rows_go_from_the_embeddings_to_the_output(demo):
    chart = show_layers([demo]).charts[0]
    rows = chart.rows(variant="all", form="plain")
    assert [r["at"] for r in rows] == ["embed", "0", "1", "2", "in", "mid", "out"]
    assert chart.spec["layer"][0]["encoding"]["x"]["sort"] == [r["at"] for r in rows]


def test_every_switch_has_a_choice_and_changes_rows(demo):
    panel = show_layers([demo])
    assert [switch.name for switch in panel.switches] == ["variant", "form"]
    chart = panel.charts[0]
    for switch in panel.switches:
        seen = {
            str([r["value"] for r in chart.rows(**panel.positions | {switch.name: value})])
            for value, _ in switch.choices
        }
        assert len(seen) == len(switch.choices)


def test_a_measure_without_a_twin_has_one_copy(demo):
    chart = next(c for c in show_layers([demo]).charts if c.name == "layers-mean-share")
    assert "form" not in chart.columns
    assert len(chart.columns["site"]) == 7 * 3


def test_a_site_without_variants_stands_in_each(demo):
    weight = Reading(
        "demo", "embed.weight", "all", "", None, "mean-share", 0.1, None, None, 9, 3
    )
    both = Exhibit("demo", [*demo.readings, weight])
    panel = show_layers([both])
    assert panel.positions["part"] == "residual stream"
    chart = next(c for c in panel.charts if c.name == "layers-mean-share")
    (row,) = chart.rows(variant="no-sink", part="other sites")
    assert row["value"] == 0.1


def test_a_series_shows_one_step_at_a_time(exhibits):
    panel = show_layers([exhibits.exhibit(steps=(0, 1000))])
    assert panel.positions["step"] == "1000"
    assert len(panel.charts[0].rows(**panel.positions)) == 7


def test_without_readings_there_is_no_profile():
    assert show_layers([Exhibit("a", [])]) is None


def test_steps_are_the_axis_and_a_site_is_chosen(exhibits):
    run = exhibits.exhibit(steps=(0, 512, 143_000))
    panel = show_series([run])
    assert panel.positions["site"] == "norm.out"
    chart = panel.charts[0]
    rows = chart.rows(**panel.positions)
    assert [r["step"] for r in rows] == [0, 512, 143_000]
    readings = [
        r.value
        for r in run.readings
        if (r.site, r.variant, r.measure) == ("norm.out", "all", "mean-cosine-cross")
    ]
    assert [r["value"] for r in rows] == readings
    assert chart.spec["layer"][0]["encoding"]["x"]["field"] == "step"


def test_a_run_without_steps_has_no_series(demo):
    assert show_series([demo]) is None


def test_a_page_of_one_site_has_no_profile_of_single_dots(demo):
    one = Reading("a", "rows", "all", "", None, "isoscore", 0.5, None, None, 9, 3)
    assert LAYERS.on_page([Exhibit("a", [one]), Exhibit("b", [one])]) is None
    assert LAYERS.on_page([Exhibit("a", [one]), demo]) is not None
    assert show_layers([Exhibit("a", [one])]).charts  # for `isoscope figure`


def test_axes_have_titles_and_short_numbers(demo):
    chart = show_layers([demo]).charts[0]
    for layer in chart.spec["layer"]:
        encoding = layer["encoding"]
        assert encoding["x"]["axis"]["title"] == "site"
        if encoding["y"]["field"] == "value":
            assert "'.2~e'" in encoding["y"]["axis"]["labelExpr"]

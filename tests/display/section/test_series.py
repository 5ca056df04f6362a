"""Measures over steps."""

from isoscope.display.section.series import show


def test_steps_are_the_axis_and_a_site_is_chosen(exhibits):
    run = exhibits.exhibit(steps=(0, 512, 143_000))
    panel = show([run])
    assert panel.chosen["site"] == "norm.out"
    chart = panel.charts[0]
    rows = chart.rows(**panel.chosen)
    assert [r["step"] for r in rows] == [0, 512, 143_000]
    readings = [
        r.value
        for r in run.readings
        if (r.site, r.variant, r.measure) == ("norm.out", "all", "mean-cosine-cross")
    ]
    assert [r["value"] for r in rows] == readings
    assert chart.spec["layer"][0]["encoding"]["x"]["field"] == "step"


def test_a_run_without_steps_has_no_series(demo):
    assert show([demo]) is None

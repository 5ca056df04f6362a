"""The mean cosine by frequency and position, charts tested on their rows."""

import altair as alt

from isoscope.display.page.section import Exhibit
from isoscope.display.section.profiles import show_bands as show


def test_every_row_is_the_reading_of_a_band(demo):
    panel = show([demo])
    assert [c.name for c in panel.charts] == [
        "bands-frequency-mean-cosine",
        "bands-position-mean-cosine",
    ]
    assert panel.positions == {"site": "norm.out", "variant": "all"}
    for chart in panel.charts:
        alt.LayerChart.from_dict(chart.spec, validate=True)
        family = chart.name.split("-")[1]
        for row in chart.rows(site="resid.1", variant="no-sink"):
            (reading,) = [
                r
                for r in demo.readings
                if (r.site, r.variant, r.group)
                == ("resid.1", "no-sink", f"{family} {row['at']}")
            ]
            assert (row["value"], row["low"]) == (reading.value, reading.low)
    assert [r["at"] for r in panel.charts[0].rows(**panel.positions)] == [
        "1e-4 to 1e-3",
        "above 1e-2",
    ]


def test_a_real_survey_has_its_bands_from_rare_to_frequent_and_first_to_last(surveyed):
    panel = show([surveyed])
    frequency, position = panel.charts
    assert panel.positions["site"] == "norm.out"
    at = position.spec["layer"][0]["encoding"]["x"]["sort"]
    assert at[:4] == ["0", "1", "2-3", "4-7"]
    assert len(frequency.rows(**panel.positions)) >= 2
    rows = position.rows(**panel.positions)
    first = [r for r in rows if r["at"] == "0"]
    assert len(first) == 1 and first[0]["n"] == 40  # the first token of each document
    assert sum(r["n"] for r in rows) == surveyed.reading("mean-cosine", "norm.out").n


def test_other_groups_and_runs_without_bands_have_no_section(demo):
    plain = [r for r in demo.readings if not r.group]
    assert show([Exhibit("a", plain)]) is None

"""The chart of a measure over places."""

import altair as alt

from isoscope.display.page.profile import COLUMNS, Axis, profile


def test_the_specification_is_valid_and_reads_the_columns_it_names():
    spec = profile("IsoScore", Axis(("embed", "0")), ["a", "b"], hint="1 is isotropic")
    alt.LayerChart.from_dict(spec, validate=True)
    fields = {
        channel["field"]
        for layer in spec["layer"]
        for channel in layer["encoding"].values()
        if isinstance(channel, dict) and "field" in channel
    }
    assert fields <= set(COLUMNS)
    assert spec["title"] == {"text": "IsoScore", "subtitle": "1 is isotropic"}


def test_runs_are_distinguished_by_colour_dashes_and_shapes():
    lines = profile("x", Axis(("0",)), ["a", "b"])["layer"]
    line, points = lines[3]["encoding"], lines[4]["encoding"]
    assert line["color"]["scale"]["domain"] == ["a", "b"]
    dashes = line["strokeDash"]["scale"]["range"]
    assert dashes[0] != dashes[1]
    assert len(set(points["shape"]["scale"]["range"])) == 2


def test_one_run_needs_no_legend():
    spec = profile("x", Axis(("0",)), ["a"])
    assert spec["layer"][3]["encoding"]["color"]["legend"] is None


def test_steps_lie_on_an_axis_of_numbers():
    spec = profile("x", Axis(field="step", logarithmic=True), ["a"])
    assert spec["layer"][0]["encoding"]["x"]["scale"]["type"] == "symlog"


def test_a_line_ends_where_the_blocks_do():
    layers = profile("x", Axis(("0",)), ["a"])["layer"]
    for place in (0, 2, 3):  # band, isotropic line, line
        detail = layers[place]["encoding"]["detail"]
        fields = [d["field"] for d in (detail if isinstance(detail, list) else [detail])]
        assert "stretch" in fields

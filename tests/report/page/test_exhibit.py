"""One run as a page sees it."""

from dataclasses import replace

import numpy as np

from isoscope.types import Reading


def test_curves_and_readings_are_found_by_name(demo):
    assert demo.curve("spectrum", "resid.1", "no-sink")["rank"][0] == 1
    assert demo.curve("spectrum", "nowhere") is None
    assert demo.reading("isoscore", "embed").value == 0.2
    assert demo.reading("isoscore", "nowhere") is None
    assert demo.sites[0] == "embed"
    assert len(demo.drawn("causes")) == len(demo.sites)


def test_a_reading_of_a_group_is_not_that_of_the_site(demo):
    one = replace(demo.reading("isoscore", "embed"), group="rare", value=9.0)
    assert (
        replace(demo, readings=[*demo.readings, one]).reading("isoscore", "embed").value == 0.2
    )


def test_readings_that_are_no_numbers_are_left_out_and_counted(demo):
    bad = Reading("a", "rows", "all", "", None, "alpha", float("nan"), None, None, 9, 3)
    shown = replace(demo, readings=[bad, *demo.readings]).finite
    assert len(shown.readings) == len(demo.readings)
    assert "1 of" in shown.remarks[-1]
    assert demo.finite is demo


def test_an_interval_that_is_no_number_is_no_interval(demo):
    bad = replace(demo.reading("isoscore", "embed"), low=float("nan"), high=float("inf"))
    (shown,) = replace(demo, readings=[bad]).finite.readings
    assert (shown.value, shown.low, shown.high) == (bad.value, None, None)


def test_words_of_curves_are_written_out_too(exhibits):
    (curve,) = [c for c in exhibits.curves_of("a\x1b", "all") if c.name == "causes"]
    words = np.array(["\x1b[2J", "b", "c"], object)
    bad = exhibits.Exhibit("a", [], [replace(curve, arrays=curve.arrays | {"detail": words})])
    (shown,) = bad.harmless.curves
    assert shown.site == r"a\x1b"
    assert shown.arrays["detail"].tolist() == [r"\x1b[2J", "b", "c"]
    assert shown.arrays["share"] is curve.arrays["share"]


def test_names_that_would_be_obeyed_are_written_out(exhibits):
    shown = exhibits.exhibit("a\x1b[2J\u202eb").harmless
    assert shown.name == r"a\x1b[2J\u202eb"
    assert shown.readings[0].run == shown.name
    assert shown.levels["embed", "all", "isoscore"] == 1.0

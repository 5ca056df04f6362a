"""The table of every number."""

from isoscope.report.page.numbers import MOST, limited


def test_few_readings_are_all_kept_in_their_order(demo):
    kept, numbers = limited([demo])
    assert numbers.kept == list(demo.readings)
    assert numbers.left_out == ""
    assert kept[0].readings is demo.readings


def test_of_many_the_usual_ones_are_kept_and_the_rest_is_said(exhibits):
    long = exhibits.exhibit(layers=20, steps=tuple(range(40)))
    assert len(long.readings) > MOST
    (kept,), numbers = limited([long])
    assert len(numbers.kept) == len(kept.readings) == MOST
    assert "isoscope read RUN --csv" in numbers.left_out
    assert f"of {len(long.readings):,} readings" in numbers.left_out
    assert {each.variant for each in kept.readings[:5000]} == {"all"} or {
        each.variant for each in kept.readings
    } >= {"all"}
    everywhere = [each for each in long.readings if each.variant == "all"]
    usual = [each for each in everywhere if each.measure == "isoscore-debiased"]
    assert set(map(id, usual)) <= set(map(id, kept.readings))


def test_columns_hold_what_readings_hold(demo):
    _, numbers = limited([demo])
    table = numbers.packed([None] * len(numbers.kept))
    first = demo.readings[0]
    assert table["site"]["words"][table["site"]["at"][0]] == first.site
    assert table["value"]["is"][0] == first.value
    assert table["warnings"]["words"][0] == ()

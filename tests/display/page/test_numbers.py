"""The table of every number."""

from collections import Counter

from isoscope.display.page.numbers import MOST, limited


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
    sizes = Counter(each.variant for each in long.readings)
    counts = Counter(each.variant for each in kept.readings)
    # Variants are kept one after the other: what does not fit is of the last that began.
    assert counts["all"] == sizes["all"]
    assert counts["no-special"] == sizes["no-special"]
    assert counts["no-sink"] == MOST - 2 * sizes["all"] < sizes["no-sink"]
    rest = [each.measure for each in kept.readings if each.variant == "no-sink"]
    assert "mean-cosine-cross" in rest and "participation" not in rest
    order = {id(each): place for place, each in enumerate(long.readings)}
    places = [order[id(each)] for each in kept.readings]
    assert places == sorted(places)


def test_bands_are_left_out_before_any_reading_of_all_rows(exhibits):
    run = exhibits.exhibit(bands=exhibits.BANDS)
    whole = [each for each in run.readings if not each.group]
    (kept,), numbers = limited([run], most=len(whole))
    assert kept.readings == whole
    assert f"{len(run.readings) - len(whole)} of" in numbers.left_out


def test_of_several_runs_each_keeps_its_own(exhibits):
    runs = [exhibits.exhibit("one"), exhibits.exhibit("two")]
    (one, two), numbers = limited(runs, most=100)
    assert {each.run for each in one.readings} == {"one"}
    assert {each.run for each in two.readings} == {"two"}
    assert len(one.readings) + len(two.readings) == len(numbers.kept) == 100
    assert abs(len(one.readings) - len(two.readings)) <= len(one.sites)


def test_columns_hold_what_readings_hold(demo):
    _, numbers = limited([demo])
    table = numbers.packed([None] * len(numbers.kept))
    first = demo.readings[0]
    assert table["site"]["words"][table["site"]["at"][0]] == first.site
    assert table["value"]["is"][0] == first.value
    assert table["warnings"]["words"][0] == ()

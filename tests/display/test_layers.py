"""A table of layers: sites below each other, measures side by side."""

import pytest

from isoscope.display.layers import USUAL, WIDEST, columns, is_wide, layers
from isoscope.types import Reading


def reading(site, measure, value=0.5, **given):
    settings = {
        "run": "r", "variant": "all", "group": "", "step": None, "low": None, "high": None,
        "n": 100, "d": 8, "warnings": (), **given,
    }  # fmt: skip
    return Reading(site=site, measure=measure, value=value, **settings)


def cells(table):
    return {column.head: column.cells for column in table.columns}


def test_a_line_is_a_site():
    found = [
        reading(site, m, v) for site, v in (("embed", 0.1), ("resid.0", 0.2)) for m in "ab"
    ]
    table = cells(layers(found))
    assert table["site"] == ("embed", "resid.0")
    assert list(table) == ["site", "a", "b", "n", "d"]
    assert [float(each) for each in table["a"]] == pytest.approx([0.1, 0.2])
    assert table["n"] == ("100", "100")


def test_an_interval_is_half_its_width():
    table = cells(layers([reading("x", "a", 0.5, low=0.4, high=0.6), reading("y", "a")]))
    value, _, half = table["a"][0].partition(" ±")
    assert float(value) == 0.5
    assert float(half) == pytest.approx(0.1)
    assert "±" not in table["a"][1]


def test_what_is_missing_is_a_dash():
    table = cells(layers([reading("x", "a"), reading("y", "b")]))
    assert table["a"][1] == table["b"][0] == "–"


def test_variants_are_shown_where_they_have_other_rows():
    found = [
        reading("x", "a"), reading("x", "a", variant="no-sink", n=99),
        reading("x", "a", variant="no-special", n=50),
        reading("y", "a"), reading("y", "a", variant="no-sink"),
    ]  # fmt: skip
    table = cells(layers(found))
    assert list(zip(table["site"], table["variant"], strict=True)) == [
        ("x", "all"), ("x", "no-sink"), ("y", "all"),
    ]  # fmt: skip


def test_a_variant_asked_for_alone_is_shown():
    table = cells(layers([reading(s, "a", variant="no-special") for s in "xy"]))
    assert table["site"] == ("x", "y")


def test_few_measures_are_all_shown_and_of_many_the_usual():
    few = [reading("x", f"m{i}") for i in range(WIDEST)]
    assert columns(few) == [f"m{i}" for i in range(WIDEST)]
    many = [reading("x", name) for name in (*USUAL[::-1], *(f"m{i}" for i in range(9)))]
    assert columns(many) == list(USUAL)
    strange = [reading("x", f"m{i}") for i in range(9)]
    assert columns(strange) == [f"m{i}" for i in range(WIDEST)]


def test_what_all_lines_share_is_the_caption():
    table = layers([reading("x", "a"), reading("y", "a")], left_out=["b: too few rows"])
    assert table.caption == "run r, variant all"
    assert "b: too few rows" in str(table)


def test_names_out_of_files_are_made_harmless():
    table = cells(layers([reading("x\x1b[31m", "a"), reading("y", "a")]))
    assert "\x1b" not in table["site"][0]


def test_several_sites_are_wide():
    assert is_wide([reading("x", "a"), reading("y", "a")])
    assert not is_wide([reading("x", "a"), reading("x", "b")])

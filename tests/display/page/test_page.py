"""The page as a file: its sections, its readings, and that no text in it is executed."""

import base64
import html
import json
import re
import zlib
from collections import Counter
from dataclasses import replace

import pytest

from isoscope.display.page.bundle import asset, script_hash, vega
from isoscope.display.page.page import (
    MOST,
    limit_readings,
    overflow_note,
    pack_readings,
    page,
)
from isoscope.display.page.section import Exhibit
from isoscope.display.section import SECTIONS
from isoscope.types import Reading

HOSTILE = "</script><img src=x onerror=alert(1)>\x1b[2J"
ALONE = Reading("a", "rows", "all", "", None, "alpha", 1.5, None, None, 9, 3)


def values_of(text):
    packed = re.search(r'id="values">([^<]*)<', text)[1]
    return json.loads(zlib.decompress(base64.b64decode(packed)))


@pytest.fixture(scope="module")
def made(demo):
    return page([demo], sections=SECTIONS)


def test_sections_stand_in_the_order_of_the_list(made):
    found = re.findall(r'<section id="([\w-]+)"', made.text)
    names = [each.name for each in SECTIONS if each.name not in ("series", "sweep")]
    assert found == [*names, "numbers"]


def test_every_chart_has_its_place_its_rows_and_its_button(made, demo):
    values = values_of(made.text)
    charts = [chart for s in SECTIONS if (p := s.show([demo])) for chart in p.charts]
    assert set(values["charts"]) == {chart.name for chart in charts}
    for chart in charts:
        assert f'data-chart="{chart.name}"' in made.text
        assert f'data-svg="{chart.name}"' in made.text
        columns = values["charts"][chart.name]["columns"]
        lengths = {len(c.get("is", c.get("at"))) for c in columns.values()}
        assert lengths == {len(next(iter(chart.columns.values())))}


def test_only_the_two_scripts_of_the_page_may_run(made):
    content = html.unescape(
        re.search(r'Content-Security-Policy" content="([^"]*)"', made.text)[1]
    )
    assert script_hash(asset("page.js")) in content
    assert script_hash(vega()) in content
    assert made.text.count("<script>") == 1


def test_the_page_is_small(made):
    assert len(made.text.encode()) < 1.5e6


def test_hostile_names_are_text(demo):
    bad = replace(demo, name=HOSTILE, facts={"Model": HOSTILE}, remarks=[HOSTILE])
    text = page([bad], sections=SECTIONS).text
    assert "<img src=x" not in text
    assert "\x1b" not in text
    assert values_of(text)["title"] == r"</script><img src=x onerror=alert(1)>\x1b[2J"


@pytest.mark.parametrize(
    "readings",
    [
        [ALONE],
        [replace(ALONE, low=1.5, high=1.5)],
        [replace(ALONE, measure="my-own", site="somewhere")],
    ],
)
def test_a_run_with_next_to_nothing_still_has_a_page(readings):
    text = page([Exhibit("a", readings)], sections=SECTIONS).text
    assert '<section id="verdict"' in text
    assert '<section id="numbers"' in text
    assert '<a href="#numbers">' in text


@pytest.mark.parametrize("readings", [[], [replace(ALONE, value=float("nan"))]])
def test_a_page_without_readings_has_no_table_of_readings(readings):
    text = page([Exhibit("a", readings)], sections=SECTIONS).text
    assert '<section id="verdict"' in text
    assert 'id="numbers"' not in text
    assert 'href="#numbers"' not in text


def test_hundreds_of_layers_fit_on_a_page(exhibits):
    deep = exhibits.exhibit(layers=300, measures={"mean-cosine": 0.3, "mean-share": 0.2})
    made = page([deep], sections=SECTIONS)
    assert len(made.text.encode()) < 1.5e6
    columns = values_of(made.text)["charts"]["layers-mean-cosine"]["columns"]
    assert len(columns["site"]["words"]) == 304


def test_several_runs_share_their_charts(exhibits):
    runs = [exhibits.exhibit("one"), exhibits.exhibit("two", layers=5)]
    values = values_of(page(runs, sections=SECTIONS).text)
    chart = values["charts"]["layers-isoscore"]
    assert chart["columns"]["run"]["words"] == ["one", "two"]
    assert "run" not in values["chosen"]["causes"]  # two are side by side
    for kind in ("causes-removal", "causes", "dimensions"):
        beside = [values["charts"][f"{kind}-{place}"] for place in (0, 1)]
        assert [each["columns"]["run"]["words"] for each in beside] == [["one"], ["two"]]
        assert kind not in values["charts"]
    three = values_of(page([*runs, exhibits.exhibit("three")], sections=SECTIONS).text)
    for section in ("causes", "dimensions"):
        assert three["chosen"][section]["run"] == "one"
        assert three["charts"][section]["columns"]["run"]["words"] == ["one", "two", "three"]


def test_it_shows_itself_in_a_frame_that_can_do_nothing_else(made):
    frame = made._repr_html_()
    assert 'sandbox="allow-scripts allow-downloads"' in frame
    inside = re.search(r'srcdoc="([^"]*)"', frame)[1]
    assert html.unescape(inside) == made.text
    assert "demo" in repr(made)


def test_it_is_saved_whole(made, tmp_path):
    made.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == made.text


def test_few_readings_are_all_kept_in_their_order(demo):
    kept = limit_readings([demo])
    assert overflow_note([demo], kept) == ""
    assert kept[0].readings is demo.readings


def test_of_many_the_usual_ones_are_kept_and_the_rest_is_reported(exhibits):
    long = exhibits.exhibit(layers=20, steps=tuple(range(40)))
    assert len(long.readings) > MOST
    (kept,) = limit_readings([long])
    assert len(kept.readings) == MOST
    note = overflow_note([long], [kept])
    assert "isoscope read RUN --csv" in note
    assert f"of {len(long.readings):,} readings" in note
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


def test_bands_are_dropped_before_any_reading_of_all_rows(exhibits):
    run = exhibits.exhibit(bands=exhibits.BANDS)
    whole = [each for each in run.readings if not each.group]
    (kept,) = limit_readings([run], most=len(whole))
    assert kept.readings == whole
    assert f"{len(run.readings) - len(whole)} of" in overflow_note([run], [kept])


def test_of_several_runs_each_keeps_its_own(exhibits):
    runs = [exhibits.exhibit("one"), exhibits.exhibit("two")]
    one, two = limit_readings(runs, most=100)
    assert {each.run for each in one.readings} == {"one"}
    assert {each.run for each in two.readings} == {"two"}
    assert len(one.readings) + len(two.readings) == 100
    assert abs(len(one.readings) - len(two.readings)) <= len(one.sites)


def test_columns_hold_what_readings_hold(demo):
    table = pack_readings([demo])
    first = demo.readings[0]
    assert table["site"]["words"][table["site"]["at"][0]] == first.site
    assert table["value"]["is"][0] == first.value
    assert table["warnings"]["words"][0] == ()

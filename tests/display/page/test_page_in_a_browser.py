"""The page in a real browser: drawn, switched, sorted, saved, read in the dark, and silent."""

import csv
import json
import math
import time
from dataclasses import replace
from io import StringIO
from xml.etree import ElementTree

import pytest

from isoscope.display import READINGS, Results
from isoscope.display.page.page import page
from isoscope.display.page.section import Exhibit
from isoscope.display.section import SECTIONS
from isoscope.measures import MEASURES
from isoscope.types import Reading


def text_of(path, deadline=10.0):
    end = time.monotonic() + deadline
    while time.monotonic() < end:
        if path.exists() and path.stat().st_size:
            return path.read_text()
        time.sleep(0.05)
    raise AssertionError(f"{path.name} did not arrive")


def test_every_chart_is_drawn_without_an_error_or_a_request(opened, demo):
    assert opened([demo]) == ""
    opened.click("[data-more=layers]")
    opened.settle()
    drawn = opened.run("return isoscope.drawn")
    panels = {s.name: s.show([demo]) for s in SECTIONS}
    unfolded = [c.name for p in panels.values() if p for c in p.charts if not c.folded]
    assert set(unfolded) <= set(drawn)
    assert {c.name for c in panels["layers"].charts} <= set(drawn)
    marks = opened.run(
        "return isoscope.drawn.map((n) => document.querySelectorAll("
        "`[data-chart='${n}'] .marks path, [data-chart='${n}'] .marks text`).length)"
    )
    assert min(marks) > 3
    said, outside, asked = opened.troubles()
    assert said == []
    assert outside == []
    assert len([u for u in asked if u.startswith("file:")]) <= 1  # the page itself


def test_every_switch_changes_the_rows_behind_the_marks(opened, demo):
    opened([demo])
    for section in SECTIONS:
        panel = section.show([demo])
        for switch in panel.switches if panel else ():
            obeying = [c for c in panel.charts if switch.name in c.columns and not c.folded]
            seen = set()
            for value, _ in switch.choices:
                opened.choose(section.name, switch.name, value)
                for chart in obeying[:2]:
                    rows = opened.rows(chart.name)
                    assert {str(r[switch.name]) for r in rows} == {value}
                seen.add(json.dumps([opened.rows(c.name) for c in obeying[:2]]))
            assert len(seen) == len(switch.choices), f"{section.name} {switch.name}"
            opened.choose(section.name, switch.name, switch.chosen)


def test_the_title_of_a_chart_names_the_estimate_that_is_shown(opened, demo):
    opened.again([demo])
    title = "return document.querySelector(\"[data-chart='layers-isoscore'] .role-title\")"
    for form in ("debiased", "plain", "debiased"):
        opened.choose("layers", "form", form)
        opened.settle()
        assert opened.run(f"{title}.textContent").startswith(f"IsoScore, {form}")


def test_rows_behind_the_marks_are_the_readings(opened, demo):
    opened.again([demo])
    rows = opened.rows("layers-isoscore")
    values = {r["site"]: r["value"] for r in rows}
    for site in demo.sites:
        reading = demo.reading("isoscore-debiased", site)
        assert math.isclose(values[site], reading.value, rel_tol=1e-7)


def test_the_table_sorts_and_filters_by_keyboard(opened, demo):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    opened.again([demo])
    cells = """
    return [...document.querySelectorAll('#table tbody tr')].map(
      (row) => row.cells[[...document.querySelectorAll('#table th')]
        .findIndex((head) => head.dataset.key === arguments[0])].textContent);
    """
    box = opened.browser.find_element(By.ID, "filter")
    box.send_keys("isoscore-debiased NO-SINK")
    assert set(opened.run(cells, "measure")) == {"isoscore-debiased"}
    assert len(opened.run(cells, "value")) == len(demo.sites)
    head = opened.browser.find_element(By.CSS_SELECTOR, "th[data-key=value] button")
    head.send_keys(Keys.ENTER)
    down = [float(text) for text in opened.run(cells, "value")]
    assert down == sorted(down, reverse=True)
    head.send_keys(Keys.ENTER)
    up = [float(text) for text in opened.run(cells, "value")]
    assert up == down[::-1]
    sort = "return document.querySelector('th[data-key=value]').getAttribute('aria-sort')"
    assert opened.run(sort) == "ascending"
    names = opened.browser.find_element(By.CSS_SELECTOR, "th[data-key=site] button")
    names.send_keys(Keys.ENTER)
    assert opened.run(cells, "site")[0] == "embed"


def test_what_is_saved_parses_and_is_what_the_package_prints(opened, exhibits, downloads):
    run = exhibits.exhibit("saved", variants=("all", "no-sink"))
    rounded = [replace(r, **_rounded(r)) for r in run.readings]
    opened([replace(run, readings=rounded)])
    levels = {(r.measure, r.n, r.d): run.levels[r.site, r.variant, r.measure] for r in rounded}
    ours = Results(rounded, READINGS, isotropic=levels)
    for kind in ("csv", "json", "latex"):
        opened.click(f"[data-save={kind}]")
    lines = list(csv.DictReader(StringIO(text_of(downloads / "saved.csv"))))
    expected = list(csv.DictReader(StringIO(ours.to_csv())))
    assert [_numbers(line) for line in lines] == [_numbers(line) for line in expected]
    objects = [json.loads(line) for line in text_of(downloads / "saved.jsonl").splitlines()]
    assert objects == [json.loads(line) for line in ours.to_json().splitlines()]
    assert text_of(downloads / "saved.tex") == ours.to_latex()
    opened.click("[data-svg=layers-isoscore]")
    picture = ElementTree.fromstring(text_of(downloads / "saved-layers-isoscore.svg"))
    assert picture.tag.endswith("svg")


def _rounded(reading):
    return {key: float(f"{getattr(reading, key):.8g}") for key in ("value", "low", "high")}


def _numbers(line):
    numbers = ("value", "low", "high", "n", "d")
    return {key: float(text) if key in numbers else text for key, text in line.items()}


CONTRAST = """
const channels = (text) => {
  const [r, g, b, a] = text.match(/[\\d.]+/g).map(Number);
  return { rgb: [r, g, b], a: a === undefined ? 1 : a };
};
const ground = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const found = channels(getComputedStyle(at).backgroundColor);
    if (found.a === 1) return found.rgb;
  }
  return [255, 255, 255];
};
const light = (rgb) => rgb.map((v) => v / 255)
  .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const out = [];
for (const element of document.querySelectorAll('body *')) {
  const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  if (!own || !element.getClientRects().length || element.closest('.skip')) continue;
  const style = getComputedStyle(element);
  const inside = element.closest('svg');
  const ink = channels(inside ? style.fill : style.color).rgb;
  const [a, b] = [light(ink), light(ground(element))].sort((x, y) => y - x);
  out.push([(a + 0.05) / (b + 0.05), element.tagName, element.textContent.slice(0, 40)]);
}
return out;
"""


@pytest.mark.parametrize("dark", [False, True])
def test_text_is_legible_in_light_and_dark(opened, demo, dark):
    opened.again([demo], dark=dark)
    look = opened.run("return document.documentElement.dataset.look")
    assert look == ("dark" if dark else "light")
    found = opened.run(CONTRAST)
    assert len(found) > 100
    assert [each for each in found if each[0] < 4.5] == []


def test_the_button_changes_the_look_of_charts_too(opened, demo):
    opened([demo])
    fill = "return getComputedStyle(document.querySelector('.chart svg text')).fill"
    before = opened.run(fill)
    opened.click("#look")
    opened.settle()
    assert opened.run("return document.documentElement.dataset.look") == "dark"
    assert opened.run(fill) != before


BEYOND = """
return [...document.querySelectorAll('main *')]
  .filter((e) => !e.closest('.scroll, table, svg'))
  .filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
  .map((e) => e.outerHTML.slice(0, 80));
"""


OUTSIDE = """
return [...document.querySelectorAll('.chart svg text, .chart svg path')]
  .map((e) => [e.getBoundingClientRect(), e])
  .filter(([box]) => box.width && (box.right > innerWidth + 1 || box.left < -1))
  .map(([box, e]) => [e.closest('.chart').id, e.textContent, box.left, box.right]);
"""


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_overflows(opened, demo, exhibits, width):
    long = exhibits.exhibit("a-run-with-a-very-long-name-" * 6)
    opened([demo, long], width=width)
    opened.click("[data-more=layers]")
    opened.settle()
    wide = opened.run("return [document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1] == width
    beyond = opened.run(BEYOND)
    assert beyond == []
    charts = opened.run(
        "return [...document.querySelectorAll('.chart svg')].filter((e) => "
        "e.getBoundingClientRect().right > innerWidth + 1).length"
    )
    assert charts == 0
    assert opened.run(OUTSIDE) == []


CONTROLS = """
const all = [...document.querySelectorAll('a[href], button, input, select, summary, .scroll')]
  .filter((e) => e.checkVisibility() && !e.closest('.skip'));
return all.map((e) => [
  e.tagName + '#' + e.id, e.tabIndex,
  (e.getAttribute('aria-label') || e.textContent || e.labels?.[0]?.textContent || '').trim(),
]);
"""
FOCUSED = """
window.seen = [];
document.addEventListener('focusin', ({ target: at }) => window.seen.push(
  at.id || at.name || at.dataset.save || at.dataset.svg || at.textContent.slice(0, 30)));
"""


def test_every_control_has_a_name_and_is_reached_by_keyboard(opened, demo):
    from selenium.webdriver.common.keys import Keys

    opened([demo])
    controls = opened.run(CONTROLS)
    assert len(controls) > 40
    assert [each for each in controls if each[1] < 0 or not each[2]] == []
    opened.run(FOCUSED)
    opened.browser.switch_to.active_element.send_keys(Keys.TAB * (len(controls) + 5))
    seen = opened.run("return window.seen")
    for wanted in (
        "look", "layers-variant", "layers-form", "spectrum-site", "filter", "csv", "spectrum",
    ):  # fmt: skip
        assert wanted in seen
    assert seen.index("look") < seen.index("layers-variant") < seen.index("filter")


def test_a_switch_obeys_the_keyboard(opened, demo):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    opened([demo])
    before = opened.rows("layers-isoscore")
    radio = opened.browser.find_element(By.CSS_SELECTOR, "input[name=layers-variant]")
    opened.run("arguments[0].focus()", radio)
    radio.send_keys(Keys.ARROW_RIGHT)
    opened.settle()
    after = opened.rows("layers-isoscore")
    assert {row["variant"] for row in after} == {"no-special"}
    assert before != after


def test_it_prints_without_controls_and_says_what_is_not_on_paper(opened, exhibits):
    import base64

    opened([exhibits.exhibit()], dark=True)
    opened.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        hidden = opened.run(
            "return ['nav', '#look', '.controls', '.save'].filter((css) => "
            "document.querySelector(css).checkVisibility())"
        )
        ground = opened.run("return getComputedStyle(document.body).backgroundColor")
        note = opened.run("return document.querySelector('#printed').innerText")
        made = opened.browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    finally:
        opened.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert hidden == []
    assert ground == "rgb(255, 255, 255)"
    assert note == "100 of 210 readings are printed. All readings: isoscope read RUN --csv"
    pdf = base64.b64decode(made["data"])
    assert pdf.startswith(b"%PDF-")
    assert 3 <= pdf.count(b"/Type /Page\n") <= 12


def test_a_large_model_fits_on_a_small_page(opened, exhibits):
    """How soon it is drawn is measured by bench/opening.py."""
    measures = {f"measure-{n}": 0.1 + n for n in range(10)} | exhibits.MEASURES
    run = exhibits.exhibit(layers=27, measures=measures)
    assert len(run.readings) == 31 * 20 * 3
    assert opened([run]) == ""
    assert opened.size < 1.5e6
    assert opened.run("return isoscope.drawn")[0] == "layers-mean-cosine"
    assert len(opened.rows("layers-mean-cosine")) == 31
    assert "of 1,860 readings" in opened.run(
        "return document.querySelector('#count').textContent"
    )


def test_a_series_of_154_steps_fits_on_a_small_page(opened, exhibits):
    steps = (0, *(2**n for n in range(10)), *range(1000, 144_000, 1000))
    assert len(steps) == 154
    run = exhibits.exhibit(layers=27, steps=steps, variants=("all",))
    assert opened([run]) == ""
    assert opened.size < 1.5e6
    rows = opened.rows("series-isoscore")
    assert [r["step"] for r in rows] == list(steps)
    note = opened.run("return document.querySelector('#numbers .remarks').textContent")
    assert "27,740 of 47,740 readings do not fit" in note
    assert "isoscope read RUN --csv" in note


def test_the_method_drawer_opens_on_formula_source_and_warning(opened, demo):
    notes = [MEASURES["isoscore"].note, MEASURES["mean-cosine"].note]
    opened(page([demo], notes, SECTIONS).text)
    seen = "return document.querySelector('#method-isoscore').innerText"
    assert notes[0].formula not in opened.run(seen)
    opened.click("#method-isoscore summary")
    text = opened.run(seen)
    assert notes[0].formula in text and notes[0].misleads in text
    assert "Rudman" in text and "2022" in text


ONE = Reading("a", "rows", "all", "", None, "isoscore", 0.5, 0.5, 0.5, 9, 3)


@pytest.mark.parametrize(
    "readings",
    [[ONE], [replace(ONE, value=float("nan")), ONE], [replace(ONE, value=float("nan"))], []],
    ids=["one site, no width", "a NaN", "only NaN", "nothing"],
)
def test_a_poor_run_is_not_a_blank_page(opened, readings):
    assert opened([Exhibit("poor", readings)]) == ""
    assert "poor" in opened.run("return document.querySelector('h1').textContent")
    assert len(opened.run("return document.querySelector('#verdict').textContent")) > 20
    assert opened.troubles()[0] == []


def test_hundreds_of_layers_are_drawn(opened, exhibits):
    deep = exhibits.exhibit(layers=200, measures={"mean-cosine": 0.3}, variants=("all",))
    assert opened([deep]) == ""
    assert len(opened.rows("layers-mean-cosine")) == 204


def test_it_works_inside_the_frame_of_a_notebook(opened, demo):
    frame = page([demo], sections=SECTIONS)._repr_html_()
    path = opened.folder / "notebook.html"
    path.write_text(f"<!doctype html><body>{frame}</body>")
    opened.browser.get(f"file://{path}")
    opened.browser.switch_to.frame(0)
    try:
        assert opened.wait() == ""
        assert "layers-isoscore" in opened.run("return isoscope.drawn")
    finally:
        opened.browser.switch_to.default_content()

"""The map of attention heads in a browser: a pointer chooses a head and an order."""

import numpy as np
from selenium.webdriver.common.action_chains import ActionChains

from isoscope.display.page.section import Exhibit
from isoscope.types import HeadCurve, Reading

NAME = "heads"
CHOSEN = f"return isoscope.views['{NAME}'].signal('head').site"
POINTS = """
const [name, label] = arguments;
const cells = `[data-chart='${name}'] path[aria-roledescription='rect mark']`;
const all = [...document.querySelectorAll(cells)];
return all.filter((e) => e.getAttribute('aria-label').includes(label));
"""


def exhibit():
    """Return a run of two layers of three heads; every head has a curve of its own."""
    sites = [f"head.{layer}.{head}" for layer in range(2) for head in range(3)]
    readings = [
        Reading("a", site, "all", "", None, "score-spread", float(value), 0.0, 9.0, 9, 4)
        for value, site in zip((3, 1, 2, 4, 6, 5), sites, strict=True)
    ]
    curves = [
        HeadCurve(site, "all", "score-spread", "documents", ("0", "1"), np.array([n, n + 0.5]))
        for n, site in enumerate(sites)
    ]
    return Exhibit("a", readings, curves)


def test_a_click_opens_the_curve_of_a_head_and_heads_sort_by_value(opened):
    assert opened([exhibit()]) == ""
    assert opened.run(CHOSEN) == ["head.0.0"]
    (cell,) = opened.run(POINTS, NAME, "site: head.1.1")
    opened.browser.execute_script(
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", cell
    )
    ActionChains(opened.browser).move_to_element(cell).click().perform()
    opened.settle()
    assert opened.run(CHOSEN) == ["head.1.1"]
    before = cell.rect["x"]
    opened.click(f"[data-chart='{NAME}'] input[type=radio][value=value]")
    opened.settle()
    (cell,) = opened.run(POINTS, NAME, "site: head.1.1")
    assert cell.rect["x"] < before  # the largest value comes first
    assert opened.troubles()[0] == []

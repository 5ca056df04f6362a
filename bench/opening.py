"""How soon a page shows its first chart, and how large it is, in headless Chromium.

    python bench/opening.py         all pages, to bench/results/opening.json

The pages are made of readings and curves that fill every section: a model of 31 sites with
20 measures in three variants, a series of 154 steps, and a trajectory of 154 checkpoints. Each
is opened five times; the time is the browser's own clock from the beginning of loading to the
first chart that is drawn.
"""

import importlib.util
import json
import os
import platform
import shutil
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from selenium import webdriver

import isoscope
from isoscope.display.page.page import page
from isoscope.display.section import SECTIONS
from isoscope.measures import MEASURES

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results" / "opening.json"
OPENINGS = 5
STEPS = (0, *(2**n for n in range(10)), *range(1000, 144_000, 1000))
DRAWN = """
const done = arguments[0];
const look = () => (window.isoscope?.first ? done(isoscope.first) : setTimeout(look, 10));
look();
"""
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


def made_up(place: str):
    """Return a module of made-up runs that the tests of the page use."""
    path = ROOT / "tests" / place
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pages() -> dict[str, tuple[int, str]]:
    """Return the number of readings and the text of each page."""
    module = made_up("display/exhibits.py")
    measures = {f"measure-{n}": 0.1 + n for n in range(10)} | module.MEASURES
    runs = {
        "31 sites, 20 measures, 3 variants": module.exhibit(layers=27, measures=measures),
        "154 steps of 31 sites, 10 measures": module.exhibit(
            layers=27, steps=STEPS, variants=("all",)
        ),
    }
    notes = [measure.note for measure in MEASURES.values()]
    found = {
        name: (len(run.readings), page([run], notes, SECTIONS).text)
        for name, run in runs.items()
    }
    return found | {"trajectory, 154 checkpoints of 25 sites": trajectory()}


def trajectory() -> tuple[int, str]:
    """Return the number of readings and the page of a made-up run of checkpoints."""
    module = made_up("lab/trajectory/made_up_series.py")
    with TemporaryDirectory() as folder:
        run = module.write_series(Path(folder) / "run")
        return len(isoscope.load(run).readings), isoscope.report(run).text


def browser() -> webdriver.Chrome:
    """Return a browser without a window."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in FLAGS:
        options.add_argument(flag)
    return webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))


def opened(driver: webdriver.Chrome, path: Path) -> list[float]:
    """Return when the first chart was there, in milliseconds, opening by opening."""
    times = []
    for _ in range(OPENINGS):
        driver.get("about:blank")
        driver.get(f"file://{path}")
        times.append(round(driver.execute_async_script(DRAWN)))
    return times


def main() -> None:
    load = [round(each, 2) for each in os.getloadavg()]
    driver = browser()
    driver.set_script_timeout(60)
    version = driver.capabilities["browserVersion"]
    rows = []
    try:
        with TemporaryDirectory() as folder:
            for name, (readings, text) in pages().items():
                path = Path(folder) / "page.html"
                path.write_text(text)
                times = opened(driver, path)
                row = {"page": name, "readings": readings, "bytes": path.stat().st_size}
                rows.append(row | {"milliseconds": times, "median": median(times)})
                print(rows[-1])
    finally:
        driver.quit()
    machine = {"processor": platform.processor() or platform.machine(), "load": load}
    machine |= {"cores": os.cpu_count(), "browser": f"Chromium {version}"}
    RESULTS.write_text(json.dumps({"rows": rows, "machine": machine}, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""One real browser for all tests of the page; where there is none, they say so and skip."""

import json
import shutil

import pytest

from isoscope.display.page.page import page
from isoscope.exhibit.exhibit import sections

WAIT = """
const done = arguments[0];
(async () => {
  while (!window.isoscope?.settled) {
    if (!document.getElementById('trouble').hidden) break;
    await new Promise((r) => setTimeout(r, 20));
  }
  await window.isoscope?.settled?.();
  done(document.getElementById('trouble').textContent);
})();
"""
SETTLED = "const done = arguments[0]; isoscope.settled().then(() => done());"
MARKS = """
const done = arguments[1];
isoscope.settled().then(() => done(isoscope.views[arguments[0]].data('rows')));
"""


@pytest.fixture(scope="session")
def downloads(tmp_path_factory):
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="session")
def chrome(downloads):
    """One browser for all tests of this file, with a profile of its own."""
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not binary or not driver:
        pytest.skip("no chromium and chromedriver here; `make browser` installs them")
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
        "--hide-scrollbars",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(driver)
    browser = webdriver.Chrome(options=options, service=service)
    browser.set_script_timeout(240)
    behaviour = {"behavior": "allow", "downloadPath": str(downloads)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
    yield browser
    browser.quit()


class Opened:
    """A page in the browser, and what tests ask of it."""

    def __init__(self, browser, folder):
        self.browser, self.folder, self.count = browser, folder, 0
        self.shown = None

    def __call__(self, exhibits, width=1280, dark=False):
        look = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [look]})
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.count += 1
        path = self.folder / f"{self.count}.html"
        made = (
            exhibits if isinstance(exhibits, str) else page(exhibits, sections=sections()).text
        )
        path.write_text(made)
        self.size = path.stat().st_size
        for kind in ("browser", "performance"):
            self.browser.get_log(kind)
        self.browser.get(f"file://{path}")
        self.shown = [*map(id, exhibits)], width, dark, self.browser.current_url
        return self.wait()

    def again(self, exhibits, width=1280, dark=False):
        """Open a page unless it is there: for tests that do not mind what others clicked."""
        if self.shown != ([*map(id, exhibits)], width, dark, self.browser.current_url):
            self(exhibits, width, dark)

    def wait(self):
        """Return what the page says is wrong, once everything is drawn."""
        return self.browser.execute_async_script(WAIT)

    def run(self, script, *given):
        return self.browser.execute_script(script, *given)

    def rows(self, chart):
        """Return the rows behind the marks of a chart."""
        return self.browser.execute_async_script(MARKS, chart)

    def settle(self):
        self.browser.execute_async_script(SETTLED)

    def click(self, css):
        self.run("document.querySelector(arguments[0]).click()", css)

    def choose(self, section, switch, value):
        """Put a switch into a position, as its radio button or list would."""
        script = """
        const [section, name, value] = arguments;
        const where = `[data-section="${section}"][data-switch="${name}"]`;
        const radio = document.querySelector(`input${where}[value="${value}"]`);
        if (radio) { radio.click(); return; }
        const list = document.querySelector(`select${where}`);
        list.value = value;
        list.dispatchEvent(new Event('change', { bubbles: true }));
        """
        self.run(script, section, switch, value)
        self.settle()

    def troubles(self):
        """Return errors of the console, and requests that left the page."""
        said = [e["message"] for e in self.browser.get_log("browser") if e["level"] == "SEVERE"]
        events = [
            json.loads(e["message"])["message"] for e in self.browser.get_log("performance")
        ]
        asked = [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]
        return (
            said,
            [u for u in asked if not u.startswith(("file://", "data:", "blob:"))],
            asked,
        )


@pytest.fixture(scope="session")
def opened(chrome, tmp_path_factory):
    return Opened(chrome, tmp_path_factory.mktemp("pages"))

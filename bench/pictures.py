"""Take the pictures of reports that the documentation shows, light and dark.

    python bench/pictures.py minilm=demo.html smollm2=smollm2.html
    python bench/pictures.py trajectory=series.html#trajectory

Each page is opened in headless Chromium, 1,280 pixels wide, and its top is written to
docs/images/report-NAME.png and report-NAME-dark.png, with few enough colours to be small.
With the name of a section the charts of that one are taken instead, without the table below.
"""

import base64
import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from selenium import webdriver

IMAGES = Path(__file__).parents[1] / "docs" / "images"
WIDTH, SHARPNESS = 1280, 1.5
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
SETTLED = """
const [section, done] = arguments;
const box = (name) => document.querySelector(name).getBoundingClientRect();
const ends = () => [
  section ? box(`#${section}`).top + scrollY : 0,
  box(`#${section || 'layers'} .charts`).bottom + scrollY,
];
const look = () => (window.isoscope?.settled
  ? isoscope.settled().then(() => done(ends()))
  : setTimeout(look, 50));
look();
"""


def browser() -> webdriver.Chrome:
    """Return a browser without a window, and of a given width."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in FLAGS:
        options.add_argument(flag)
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    size = {"width": WIDTH, "height": 900, "deviceScaleFactor": SHARPNESS, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.set_script_timeout(120)
    return driver


def take(driver: webdriver.Chrome, page: Path, section: str, look: str) -> Image.Image:
    """Return the charts of a section, or the top of a page to the end of the layer profile."""
    features = [{"name": "prefers-color-scheme", "value": look}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.get(f"file://{page.resolve()}")
    top, bottom = driver.execute_async_script(SETTLED, section)
    clip = {"x": 0, "y": top, "width": WIDTH, "height": bottom - top + 20, "scale": 1}
    asked = {"format": "png", "captureBeyondViewport": True, "clip": clip}
    taken = driver.execute_cdp_cmd("Page.captureScreenshot", asked)["data"]
    picture = Image.open(io.BytesIO(base64.b64decode(taken))).convert("RGB")
    return picture.quantize(128, dither=Image.Dither.NONE)


def main() -> None:
    driver = browser()
    try:
        for given in sys.argv[1:]:
            name, _, place = given.partition("=")
            page, _, section = place.partition("#")
            for look, ending in (("light", ""), ("dark", "-dark")):
                path = IMAGES / f"report-{name}{ending}.png"
                take(driver, Path(page), section, look).save(path, optimize=True)
                print(path.name, path.stat().st_size)
    finally:
        driver.quit()


if __name__ == "__main__":
    main()

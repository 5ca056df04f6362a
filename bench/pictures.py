"""Take the pictures of reports that the documentation shows, light and dark.

    python bench/pictures.py minilm=demo.html smollm2=smollm2.html

Each page is opened in headless Chromium, 1,280 pixels wide, and its top is written to
docs/images/report-NAME.png and report-NAME-dark.png, with few enough colours to be small.
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
const done = arguments[0];
const look = () => (window.isoscope?.settled ? isoscope.settled().then(() => done(
  document.querySelector('#layers .charts').getBoundingClientRect().bottom + scrollY
)) : setTimeout(look, 50));
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


def take(driver: webdriver.Chrome, page: Path, look: str) -> Image.Image:
    """Return the top of a page, down to the end of the layer profile."""
    features = [{"name": "prefers-color-scheme", "value": look}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.get(f"file://{page.resolve()}")
    height = driver.execute_async_script(SETTLED) + 20
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}
    asked = {"format": "png", "captureBeyondViewport": True, "clip": clip}
    taken = driver.execute_cdp_cmd("Page.captureScreenshot", asked)["data"]
    picture = Image.open(io.BytesIO(base64.b64decode(taken))).convert("RGB")
    return picture.quantize(128, dither=Image.Dither.NONE)


def main() -> None:
    driver = browser()
    try:
        for given in sys.argv[1:]:
            name, _, page = given.partition("=")
            for look, ending in (("light", ""), ("dark", "-dark")):
                path = IMAGES / f"report-{name}{ending}.png"
                take(driver, Path(page), look).save(path, optimize=True)
                print(path.name, path.stat().st_size)
    finally:
        driver.quit()


if __name__ == "__main__":
    main()

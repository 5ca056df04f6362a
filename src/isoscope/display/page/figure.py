"""The charts of a page for a paper: one picture of a given width, as SVG, PDF or PNG."""

import re
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

from isoscope.display.page.panel import Chart
from isoscope.display.page.runtime import GRAMMAR, needed
from isoscope.display.page.theme import config

POINTS_PER_MM = 72 / 25.4
PER_INCH = 300  # of a PNG
_GAP = 8.0  # points between charts
_WIDE_ENOUGH = {False: 100.0, True: 180.0}  # points a small chart needs, and one of half a page
_NARROW = 400.0  # points, below which a legend needs more than one line
_IDS = re.compile(r'(\bid="|url\(#|href="#)([^")]+)')
_SIZE = re.compile(r'<svg\b[^>]*?width="([\d.]+)"[^>]*?height="([\d.]+)"')


def picture(charts: Sequence[Chart], chosen: Mapping[str, str], width: float) -> str:
    """Return an SVG of charts side by side, `width` millimetres wide in all."""
    points = width * POINTS_PER_MM
    least = _WIDE_ENOUGH[any(chart.half for chart in charts)]
    across = max(1, min(3, len(charts), int(points // least)))
    each = (points - _GAP * (across - 1)) / across
    drawn = [
        _drawn(chart, chosen, each, 0.66 if len(charts) > 1 else 0.62, number)
        for number, chart in enumerate(charts)
    ]
    tall = max(height for _, height in drawn)
    lines = ceil(len(drawn) / across)
    height = tall * lines + _GAP * (lines - 1)
    placed = [
        svg.replace(
            "<svg ",
            f'<svg x="{(number % across) * (each + _GAP):g}" '
            f'y="{(number // across) * (tall + _GAP):g}" ',
            1,
        )
        for number, (svg, _) in enumerate(drawn)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" '
        f'xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{points:g}" height="{height:g}" viewBox="0 0 {points:g} {height:g}">'
        f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(placed)}</svg>\n'
    )


def converted(svg: str, suffix: str) -> bytes:
    """Return the picture in the format that a file name asks for."""
    converter = needed("vl_convert")
    if suffix == ".pdf":
        return bytes(converter.svg_to_pdf(svg))
    if suffix == ".png":
        return bytes(converter.svg_to_png(svg, scale=PER_INCH / 72, ppi=72))
    return _in_millimetres(svg).encode("utf-8")


def _drawn(
    chart: Chart, chosen: Mapping[str, str], width: float, shape: float, number: int
) -> tuple[str, float]:
    """Return one chart as SVG that fits its place, and how tall it is."""
    tall = chart.spec.get("height", 0) * 0.55 if chart.name == "dimensions" else 0
    spec: dict[str, Any] = {
        **chart.spec,
        "width": width,
        "height": max(width * shape, tall),
        "datasets": {"rows": chart.rows(**chosen)},
        "autosize": {"type": "fit", "contains": "padding"},
    }
    if isinstance(spec.get("title"), dict):  # a caption says the rest, and has the room
        spec["title"] = {"text": spec["title"]["text"]}
    svg: str = needed("vl_convert").vegalite_to_svg(
        spec, vl_version=GRAMMAR, config=_config(width), allowed_base_urls=[]
    )
    svg = svg[svg.index("<svg") :]
    svg = _IDS.sub(rf"\g<1>c{number}-\g<2>", svg)  # names in one picture must differ
    found = _SIZE.search(svg)
    return svg, float(found[2]) if found else width * shape


def _config(width: float) -> dict[str, Any]:
    found = config("paper")
    return found | {"legend": {**found["legend"], "columns": 3}} if width < _NARROW else found


def _in_millimetres(svg: str) -> str:
    """Return the picture with its size in millimetres; bare numbers would be pixels."""

    def size(found: re.Match[str]) -> str:
        width, height = (float(part) / POINTS_PER_MM for part in found.groups())
        return f'width="{width:.3f}mm" height="{height:.3f}mm"'

    return re.sub(r'width="([\d.]+)" height="([\d.]+)"', size, svg, count=1)

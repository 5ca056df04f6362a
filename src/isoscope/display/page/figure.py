"""Charts of a page as a figure for a paper: SVG, PDF or PNG of a certain width."""

import re
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, cast

from isoscope.display.page.bundle import VEGA_LITE, require_package
from isoscope.display.page.section import ROWS, Chart, ChartSpec, Position
from isoscope.display.page.theme import config

POINTS_PER_MM = 72 / 25.4
PER_INCH = 300  # of a PNG
_GAP = 8.0  # points between charts
_WIDE_ENOUGH = {False: 100.0, True: 180.0}  # points a small chart needs, and one of half width
_AXES = 48.0  # points beside charts for their axes
_NARROW = 400.0  # points, below which a legend needs more than one line
_IDS = re.compile(r'(\bid="|url\(#|href="#)([^")]+)')
_SIZE = re.compile(r'<svg\b[^>]*?width="([\d.]+)"[^>]*?height="([\d.]+)"')


def draw_figure(charts: Sequence[Chart], chosen: Mapping[str, Position], width: float) -> str:
    """Return an SVG of charts side by side, `width` millimetres wide in total."""
    points = width * POINTS_PER_MM
    least = _WIDE_ENOUGH[any(chart.half for chart in charts)]
    across = max(1, min(3, len(charts), int(points // least)))
    each = (points - _GAP * (across - 1)) / across
    drawn = [
        _draw(chart, chosen, each, 0.66 if len(charts) > 1 else 0.62, number)
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


def convert_figure(svg: str, suffix: str) -> bytes:
    """Return the figure in the format of a file suffix."""
    converter = require_package("vl_convert")
    if suffix == ".pdf":
        return bytes(converter.svg_to_pdf(svg))
    if suffix == ".png":
        return bytes(converter.svg_to_png(svg, scale=PER_INCH / 72, ppi=72))
    return _in_millimetres(svg).encode("utf-8")


def _draw(
    chart: Chart, chosen: Mapping[str, Position], width: float, shape: float, number: int
) -> tuple[str, float]:
    """Return one chart as SVG, and its height."""
    spec = chart.spec_at(chosen)
    heading: ChartSpec = {"text": chart.title}
    if chart.heading:
        heading = {"text": chart.heading, "limit": {"expr": "width"}}
    if chart.says:
        heading["subtitle"] = chart.says
    title = {"title": heading} if "title" in spec else {}
    made: float = cast("dict[str, float]", spec.get("usermeta", {})).get("width", 0.0)
    sizes: ChartSpec = {
        "width": width,
        "height": max(width * shape, chart.least_height),
        "autosize": {"type": "fit", "contains": "padding"},
    }
    if made:
        spec, sizes = _fit(spec, width - _AXES, made), {}
    svg: str = require_package("vl_convert").vegalite_to_svg(
        {**spec, **title, **sizes, "datasets": {ROWS: chart.rows(**chosen)}},
        vl_version=VEGA_LITE,
        config=config("paper", legend_columns=3 if width < _NARROW else None),
        allowed_base_urls=[],
    )
    svg = svg[svg.index("<svg") :]
    svg = _IDS.sub(rf"\g<1>c{number}-\g<2>", svg)  # ids in one figure must differ
    found = _SIZE.search(svg)
    return svg, float(found[2]) if found else width * shape


def _fit(spec: dict[str, Any], room: float, made: float) -> dict[str, Any]:
    """Return charts above and beside each other, which have no width in common, made to fit.

    `made` is the width that they were made for; those beside each other go below each other
    where there is little room. The page does the same.
    """
    share = room / made
    if "vconcat" in spec:
        return spec | {"vconcat": [_fit(each, room, made) for each in spec["vconcat"]]}
    if "hconcat" not in spec:
        return spec | {"width": spec["width"] * share}
    rest = {name: each for name, each in spec.items() if name != "hconcat"}
    if room >= _NARROW:
        return rest | {"hconcat": [_fit(each, room, made) for each in spec["hconcat"]]}
    return rest | {"vconcat": [each | {"width": room} for each in spec["hconcat"]]}


def _in_millimetres(svg: str) -> str:
    """Return the figure with its size in millimetres; bare numbers would be pixels."""

    def size(found: re.Match[str]) -> str:
        width, height = (float(part) / POINTS_PER_MM for part in found.groups())
        return f'width="{width:.3f}mm" height="{height:.3f}mm"'

    return re.sub(r'width="([\d.]+)" height="([\d.]+)"', size, svg, count=1)

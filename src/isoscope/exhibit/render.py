"""The verb of figures: one kind of chart of a run, for a paper."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoscope.errors import ConfigError, UndefinedError

if TYPE_CHECKING:
    from isoscope.display.page.panel import Chart, Panel

KINDS = (
    "layers",
    "sweep",
    "series",
    "spectrum",
    "dimensions",
    "causes",
    "bands",
    "norm",
    "embeddings",
)
SUFFIXES = (".pdf", ".svg", ".png")
COLUMN = 84.0  # millimetres, one of two columns of most journals
NARROWEST, WIDEST = 30.0, 1000.0
USUAL = 4  # small charts, where none is asked for


def figure(
    runs: Any,
    output: str | os.PathLike[str],
    *,
    kind: str = "layers",
    measures: Sequence[str] | None = None,
    site: str | None = None,
    variant: str | None = None,
    plain: bool = False,
    width: float = COLUMN,
    overwrite: bool = False,
) -> Path:
    """Write one kind of chart as PDF, SVG or PNG, `width` millimetres wide.

    `measures` are the charts of layers, series and norm, `site` is that of spectrum, series
    and embeddings; `plain` shows estimates as published instead of debiased ones.
    """
    from isoscope.display.page.paper import converted, picture
    from isoscope.display.page.runtime import needed
    from isoscope.display.page.write import check_file, write_bytes
    from isoscope.exhibit.exhibit import exhibits
    from isoscope.registry import unknown

    if kind not in KINDS:
        raise unknown("figure", kind, KINDS)
    suffix = _suffix(output)
    _fits(width)
    for package in ("altair", "vl_convert"):
        needed(package)
    check_file(output, overwrite=overwrite)
    from isoscope.display.section import SECTIONS

    (section,) = [each for each in SECTIONS if each.name == kind]
    shown = [exhibit.finite.harmless for exhibit in exhibits(runs)]
    panel = section.show(shown)
    if panel is None:
        raise UndefinedError(
            f"expected something for a figure of {kind}, got none in the run",
            hint="isoscope read RUN shows what it has; `report` shows all there is to draw",
            slug="figure-nothing",
        )
    asked = {"site": site, "variant": variant, "form": "plain" if plain else None}
    if measures and any(switch.name == "measure" for switch in panel.switches):
        asked["measure"], measures = measures[0], None
    chosen = _chosen(panel, {name: value for name, value in asked.items() if value})
    svg = picture(_charts(panel, measures), chosen, width)
    return write_bytes(output, converted(svg, suffix), overwrite=overwrite)


def _suffix(output: str | os.PathLike[str]) -> str:
    suffix = Path(output).suffix.lower()
    if suffix not in SUFFIXES:
        raise ConfigError(
            f"expected a figure that ends in .pdf, .svg or .png, got {os.fspath(output)!r}",
            hint="the ending chooses the format",
            slug="figure-format",
        )
    return suffix


def _fits(width: float) -> None:
    if not NARROWEST <= width <= WIDEST:
        raise ConfigError(
            f"expected a width of {NARROWEST:g} to {WIDEST:g} millimetres, got {width:g}",
            hint="a column of a journal has about 84, a page about 174",
            slug="figure-width",
        )


def _chosen(panel: "Panel", asked: dict[str, str]) -> dict[str, str]:
    """Return the positions of all switches; a position that is not there is refused."""
    from isoscope.registry import unknown

    switches = {switch.name: switch for switch in panel.switches}
    for name, value in asked.items():
        known = [key for key, _ in switches[name].choices] if name in switches else []
        if value in known or (name == "form" and not known):
            continue
        raise unknown(name, value, known or (["all"] if name == "variant" else known))
    return panel.chosen | {name: value for name, value in asked.items() if name in switches}


def _charts(panel: "Panel", measures: Sequence[str] | None) -> list["Chart"]:
    from isoscope.display.page.measures import FIRST
    from isoscope.registry import unknown

    if len(panel.charts) == 1:
        return list(panel.charts)
    if not measures:
        return list(panel.charts[:USUAL])
    twin = {subject.debiased: subject.plain for subject in FIRST if subject.debiased}
    known = {chart.name.partition("-")[2]: chart for chart in panel.charts}
    found: dict[str, Chart] = {}
    for name in measures:
        key = name if name in known else twin.get(name, name)
        if key not in known:
            raise unknown("measure", name, known)
        found[key] = known[key]
    return list(found.values())

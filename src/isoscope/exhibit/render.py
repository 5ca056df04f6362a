"""Render runs: a page, a figure for a paper, or a run that displays itself in a notebook."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from isoscope.display import READINGS, Results, for_html
from isoscope.display.page.bundle import require_package
from isoscope.display.page.figure import convert_figure, draw_figure
from isoscope.display.page.page import Page, page
from isoscope.display.page.section import Chart, Panel, Position
from isoscope.display.page.write import check_file, write_bytes
from isoscope.errors import ConfigError, UndefinedError
from isoscope.exhibit.exhibit import checked_meanwhile, exhibits, facts_of, opened, sections
from isoscope.measures import MEASURES
from isoscope.registry import check_names, unknown
from isoscope.store import load as load_run
from isoscope.store.run import Run
from isoscope.study.measure_choice import isotropic_levels, options_of
from isoscope.types import Reading

SUFFIXES = (".pdf", ".svg", ".png")
COLUMN = 84.0  # millimetres, one of two columns of most journals
NARROWEST, WIDEST = 30.0, 1000.0
USUAL = 4  # small charts, unless measures are named


class DisplayedRun(Run):
    """A run that displays itself as HTML, and whose readings are a table."""

    readings: Results[Reading]

    def _repr_html_(self) -> str:
        facts = "".join(
            f"<tr><th style='text-align:left'>{for_html(name)}</th>"
            f"<td style='text-align:left'>{for_html(text)}</td></tr>"
            for name, text in facts_of(self).items()
        )
        table = self.readings._repr_html_()  # pyright: ignore[reportPrivateUsage]
        return f"<table>{facts}</table>{table}"


def load(path: str | os.PathLike[str]) -> DisplayedRun:
    """Read a run folder; the run and its readings display as tables."""
    found = load_run(path)
    levels = isotropic_levels(found.readings, options_of(found.settings))
    readings = Results(found.readings, READINGS, left_out=found.left_out, isotropic=levels)
    return DisplayedRun(found.path, found.manifest, found.origin, readings)


def report(
    runs: Any,
    output: str | os.PathLike[str] | None = None,
    *,
    overwrite: bool = False,
) -> Page:
    """Make a page of one or several runs: folders, loaded runs, or readings.

    The page displays itself in a notebook; with `output` it is written to a file as well.
    """
    if output is not None:
        check_file(output, overwrite=overwrite)
    shown = opened(runs)
    with checked_meanwhile(shown):
        require_package("altair")
    made = page(exhibits(shown), [measure.note for measure in MEASURES.values()], sections())
    if output is not None:
        made.save(output, overwrite=overwrite)
    return made


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

    `measures` selects the charts of layers, series and norm, `site` the site of spectrum,
    series and embeddings. Without `measures`, `plain` shows estimates as published instead of
    debiased ones; a measure that is named is drawn as it is.
    """
    _check_options(output, width)
    for package in ("altair", "vl_convert"):
        require_package(package)
    known = {each.name: each for each in sections() if each.name != "verdict"}
    check_names("figure", [kind], known)
    check_file(output, overwrite=overwrite)
    panel = known[kind].show([exhibit.finite.printable for exhibit in exhibits(runs)])
    if panel is None:
        raise UndefinedError(
            f"cannot draw a figure of {kind}: the run has nothing to show in it",
            hint="isoscope read RUN lists its readings; isoscope report RUN draws all it has",
            slug="figure-nothing",
        )
    positions = {"site": site, "variant": variant, "form": "plain" if plain else None}
    if measures and "measure" in panel.positions:
        positions["measure"], measures = measures[0], None
    chosen = _set_switches(panel, {name: value for name, value in positions.items() if value})
    charts = [
        replace(chart, says=panel.describe(chart, chosen))
        for chart in _charts(panel, measures, str(chosen.get("form", "")))
    ]
    svg = draw_figure(charts, chosen, width)
    content = convert_figure(svg, Path(output).suffix.lower())
    return write_bytes(output, content, overwrite=overwrite)


def _check_options(output: str | os.PathLike[str], width: float) -> None:
    if Path(output).suffix.lower() not in SUFFIXES:
        raise ConfigError(
            f"expected a figure file ending in .pdf, .svg or .png, got {os.fspath(output)!r}",
            hint="the suffix determines the format",
            slug="figure-format",
        )
    if not NARROWEST <= width <= WIDEST:
        raise ConfigError(
            f"expected a width of {NARROWEST:g} to {WIDEST:g} millimetres, got {width:g}",
            hint="a journal column is about 84 mm wide, a page about 174 mm",
            slug="figure-width",
        )


def _set_switches(panel: Panel, positions: dict[str, str]) -> dict[str, Position]:
    """Return the positions of all switches; raise for a position that does not exist."""
    switches = {switch.name: switch for switch in panel.switches}
    for name, value in positions.items():
        known = [key for key, _ in switches[name].choices] if name in switches else []
        if value in known or (name == "form" and not known):
            continue
        raise unknown(name, value, known or (["all"] if name == "variant" else known))
    return panel.positions | {
        name: value for name, value in positions.items() if name in switches
    }


def _charts(panel: Panel, measures: Sequence[str] | None, form: str) -> list[Chart]:
    """Return the charts of the measures that are named, or the usual ones in one form."""
    known: dict[str, Chart] = {}
    for chart in panel.charts:
        named = {measure: chart.in_form(each) for each, (measure, _) in chart.forms.items()}
        known |= named or {chart.name.partition("-")[2]: chart}
    if not measures or not any(known):  # charts such as a spectrum are of no measure
        return [chart.in_form(form) for chart in panel.charts[:USUAL]]
    for name in measures:
        if name not in known:
            raise unknown("measure", name, known)
    return [known[name] for name in dict.fromkeys(measures)]

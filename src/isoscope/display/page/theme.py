"""Colours and fonts: the Vega configuration of the light page, the dark page and paper."""

from dataclasses import replace
from typing import Literal

from isoscope.dataclass import dataclass
from isoscope.display.page.section import ChartSpec

Look = Literal["light", "dark", "paper"]
SANS = "Inter, 'Helvetica Neue', Helvetica, 'Segoe UI', Roboto, Arial, sans-serif"
PRINT = "Liberation Sans"  # part of the converter, as wide as Helvetica, embedded
DASHES = ([1, 0], [5, 2], [2, 2], [7, 2, 2, 2], [9, 3], [1, 3])
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")


@dataclass(frozen=True)
class Inks:
    """The colours of a look."""

    ink: str
    soft: str
    line: str
    isotropic: str
    ground: str
    runs: tuple[str, ...]
    causes: tuple[str, ...]
    frequency: tuple[str, ...]
    heat: tuple[str, ...]


_LIGHT = Inks(
    ink="#1b1d22",
    soft="#5b616b",
    line="#d9dce1",
    isotropic="#6b7280",
    ground="#fcfcfa",
    runs=("#2f54c7", "#b4470b", "#0b7268", "#7a3bb8", "#8a6200", "#b0235f"),
    causes=("#bfa8e8", "#f0b088", "#86cbbf", "#e8d083", "#b9c6f2"),
    frequency=("#8b93a1", "#2f54c7", "#b4470b", "#7a3bb8", "#ccd0d8"),
    heat=("#f4f3ef", "#c9d3f2", "#8aa2e6", "#4a6ad4", "#1f3b96", "#0d1f57"),
)
INKS: dict[Look, Inks] = {
    "light": _LIGHT,
    "dark": Inks(
        ink="#e9eaee",
        soft="#a8aeba",
        line="#363a44",
        isotropic="#9aa1ad",
        ground="#14161b",
        runs=("#8fa8ff", "#f59a5b", "#4fc9b8", "#c79bf5", "#e0b849", "#f286b2"),
        causes=("#6c50b4", "#a0521f", "#1c7167", "#7d6414", "#4358a8"),
        frequency=("#8b93a1", "#8fa8ff", "#f59a5b", "#c79bf5", "#434956"),
        heat=("#1d2028", "#26346b", "#3a55b8", "#6b8af0", "#b3c4ff", "#f2f5ff"),
    ),
    "paper": replace(_LIGHT, ink="#000000", soft="#333333", line="#dddddd", ground="#ffffff"),
}


def config(look: Look, legend_columns: int | None = None) -> ChartSpec:
    """Return the Vega-Lite configuration of a look; legends may wrap into columns."""
    inks = INKS[look]
    paper = look == "paper"
    font, small, usual = (PRINT, 7, 8) if paper else (SANS, 11, 13)
    axis = {
        "labelColor": inks.soft,
        "titleColor": inks.soft,
        "labelFont": font,
        "titleFont": font,
        "labelFontSize": small,
        "titleFontSize": small,
        "titleFontWeight": "normal",
        "domainColor": inks.line,
        "tickColor": inks.line,
        "gridColor": inks.line,
        "gridOpacity": 0.6,
        "gridWidth": 0.5 if paper else 1,
        "domainWidth": 0.5 if paper else 1,
        "tickWidth": 0.5 if paper else 1,
        "tickSize": 3,
        "labelOverlap": "greedy",
        "labelSeparation": 4,
    }
    quiet = {
        "color": inks.isotropic,
        "strokeDash": [2, 3],
        "strokeWidth": 0.8 if paper else 1.2,
    }
    wrap = {} if legend_columns is None else {"columns": legend_columns}
    return {
        "background": "#ffffff" if paper else None,
        "font": font,
        "padding": {"left": 2, "right": 7, "top": 2, "bottom": 2} if paper else 0,
        "view": {"stroke": None},
        "axis": axis,
        "axisX": {"grid": False, "labelAngle": 0},
        "axisY": {"domain": False, "ticks": False, "tickCount": 4},
        "title": {
            "anchor": "start",
            "color": inks.ink,
            "font": font,
            "fontSize": usual,
            "fontWeight": 600,
            "subtitleColor": inks.soft,
            "subtitleFont": font,
            "subtitleFontSize": small,
            "offset": 4 if paper else 10,
            "frame": "group",
        },
        "legend": {
            "labelColor": inks.soft,
            "titleColor": inks.soft,
            "labelFont": font,
            "titleFont": font,
            "labelFontSize": small,
            "titleFontSize": small,
            "titleFontWeight": "normal",
            "orient": "top",
            "symbolStrokeWidth": 1.5,
            "labelLimit": 260,
            "offset": 4 if paper else 12,
            "gradientThickness": 6 if paper else 14,
            "gradientLength": 90 if paper else 180,
            "symbolSize": 30 if paper else 80,
            **wrap,
        },
        "range": {
            "category": list(inks.runs),
            "heatmap": list(inks.heat),
            "ordinal": list(inks.causes),
            "ramp": list(inks.frequency),
        },
        "scale": {"minSize": 2 if paper else 6, "maxSize": 45 if paper else 180},
        "line": {"strokeWidth": 0.9 if paper else 1.8},
        "text": {"color": inks.soft, "font": font, "fontSize": small},
        "style": {
            "isotropic": quiet,
            "isotropic-line": {**quiet, "filled": False},
            "interval": {"opacity": 0.18, "strokeWidth": 0},
            "whisker": {"strokeWidth": 1, "opacity": 0.55},
            "dot": {"filled": True, "size": 6 if paper else 26, "opacity": 1},
            "mean": {"filled": True, "size": 22 if paper else 90, "opacity": 1},
            "in-bar": {"color": inks.ink, "fontSize": small},
            "edge": {"stroke": inks.ground, "strokeWidth": 0.8},
            "mark-line": {"color": inks.soft, "strokeDash": [4, 3], "strokeWidth": 0.7},
        },
    }

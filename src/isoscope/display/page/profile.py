"""The chart of a measure over places: a line with its interval for each run."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import altair as alt

from isoscope.display.page.panel import Columns
from isoscope.display.page.theme import DASHES, SHAPES

ROWS = "rows"  # the name of the data set that switches filter
LEVEL = 2  # which of the layers is the isotropic line


@dataclass(frozen=True)
class Axis:
    """What lies along the bottom of a profile."""

    labels: tuple[str, ...] = ()  # in order; none for numbers
    title: str = ""
    field: str = "at"
    logarithmic: bool = False


def profile(
    title: str,
    axis: Axis,
    runs: Sequence[str],
    *,
    says: str = "",
    level: bool = True,
    height: int = 150,
) -> dict[str, Any]:
    """Return a specification over columns run, at, value, low, high, level and site.

    Several runs are told apart by colour, dashes and shapes; one run needs no legend. Without
    `level` there is no line for the isotropic value.
    """
    chart = deepcopy(_profile(axis, tuple(runs)))
    if not level:
        del chart["layer"][LEVEL]
    heading = {"text": title, "subtitle": says} if says else {"text": title}
    return chart | {"title": heading, "height": height}


@lru_cache(maxsize=8)
def _profile(axis: Axis, runs: tuple[str, ...]) -> dict[str, Any]:
    """Return what profiles along one axis share: building it takes longer than drawing it."""
    base = alt.Chart(alt.NamedData(ROWS)).encode(x=_bottom(axis))
    several = len(runs) > 1
    color = alt.Color(
        "run:N",
        scale=alt.Scale(domain=list(runs)),
        legend=alt.Legend(title=None) if several else None,
    )
    dash = alt.StrokeDash(
        "run:N",
        scale=alt.Scale(domain=list(runs), range=_cycled(DASHES, len(runs))),
        legend=alt.Legend(title=None) if several else None,
    )
    shape = alt.Shape(
        "run:N",
        scale=alt.Scale(domain=list(runs), range=_cycled(SHAPES, len(runs))),
        legend=alt.Legend(title=None) if several else None,
    )
    height_of = alt.Y("value:Q", title=None, scale=alt.Scale(zero=False))
    ends: dict[str, Any] = {"y": alt.Y("low:Q", title=None), "y2": "high:Q"}
    tips = [
        alt.Tooltip("run:N"),
        alt.Tooltip("site:N"),
        alt.Tooltip("value:Q", format=".4~g"),
        alt.Tooltip("low:Q", format=".4~g"),
        alt.Tooltip("high:Q", format=".4~g"),
        alt.Tooltip("level:Q", title="isotropic", format=".4~g"),
        alt.Tooltip("n:Q", format=",d"),
    ]
    # A line ends where the blocks do: what comes in at the norm need not come out of them.
    whole = alt.Detail("stretch:N")
    layers = [
        base.mark_area(style="interval").encode(color=color, detail=whole, **ends),
        base.mark_rule(style="whisker").encode(color=color, **ends),
        base.mark_line(style="isotropic-line").encode(
            y="level:Q", detail=["run:N", "stretch:N"], order="order:Q"
        ),
        base.mark_line().encode(
            y=height_of, color=color, strokeDash=dash, detail=whole, order="order:Q"
        ),
        base.mark_point(style="dot").encode(
            y=height_of, color=color, shape=shape, tooltip=tips
        ),
    ]
    return alt.layer(*layers).properties(width="container").to_dict(validate=False)


def empty_rows() -> Columns:
    """Return the columns of a profile, with nothing in them."""
    names = ("run", "site", "at", "order", "stretch", "value", "low", "high", "level", "n")
    return {name: [] for name in names}


def _bottom(axis: Axis) -> alt.X:
    title = axis.title or None
    if axis.labels:
        labels = alt.Axis(labelLimit=90)
        return alt.X(f"{axis.field}:O", sort=list(axis.labels), title=title, axis=labels)
    kind = "symlog" if axis.logarithmic else "linear"
    numbers = alt.Axis(format="~s", tickCount=5)
    scale = alt.Scale(type=kind, nice=False)
    return alt.X(f"{axis.field}:Q", title=title, axis=numbers, scale=scale)


def _cycled(values: Sequence[Any], count: int) -> list[Any]:
    return [values[place % len(values)] for place in range(count)]

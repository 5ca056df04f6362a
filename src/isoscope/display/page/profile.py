"""Profiles: a quantity over sites, stages or steps, a line with its interval for each run."""

from collections.abc import Callable, Sequence
from functools import lru_cache

import altair as alt

from isoscope.dataclass import dataclass
from isoscope.display.page.quantity import DEBIASED, PLAIN, Quantity, quantities
from isoscope.display.page.section import (
    ROWS,
    Cell,
    Chart,
    ChartSpec,
    Columns,
    Exhibit,
    Switch,
    as_columns,
    fill_variants,
    variant_switch,
)
from isoscope.display.page.theme import DASHES, SHAPES
from isoscope.site import Site, last_of_stream, order_regions
from isoscope.types import VARIANTS, Reading

OPEN = 6  # charts that are visible before "Show all" is pressed
# Labels of numbers: 2.4e-8 and not 0.0000000236.
NUMBERS = (
    "datum.value !== 0 && abs(datum.value) < 1e-3 ? format(datum.value, '.2~e') : "
    "format(datum.value, ',.5~g')"
)
Row = dict[str, Cell]
COLUMNS = ("run", "site", "at", "order", "stretch", "value", "low", "high", "level", "n")
_CHOICES = ("variant", "part", "form", "step")  # columns that switches filter


@dataclass(frozen=True)
class Axis:
    """The horizontal axis of a profile."""

    labels: tuple[str, ...] = ()  # in order; none for numbers
    title: str = ""
    field: str = "at"
    logarithmic: bool = False


# --- charts -------------------------------------------------------------------------------
def profile_charts(
    section: str,
    exhibits: Sequence[Exhibit],
    readings: Sequence[Reading],
    axis: Axis,
    rows: Callable[[Quantity], Columns],
    *,
    over: str,
    visible: int = OPEN,
) -> tuple[Chart, ...]:
    """Return one chart for each quantity of the readings; `over` names the axis in words."""
    runs = [exhibit.name for exhibit in exhibits]
    leveled = {measure for exhibit in exhibits for _, _, measure in exhibit.levels}
    return tuple(
        Chart(
            name=f"{section}-{each.plain}",
            title=each.heading,
            spec=profile(
                each.heading,
                axis,
                runs,
                hint=each.hint,
                level=not leveled.isdisjoint(each.forms.values()),
            ),
            columns=rows(each),
            alt=f"{each.title} {over}. {each.hint}".strip(),
            folded=place >= visible,
            forms=each.labelled,
        )
        for place, each in enumerate(quantities(reading.measure for reading in readings))
    )


def profile(
    title: str,
    axis: Axis,
    runs: Sequence[str],
    *,
    hint: str = "",
    level: bool = True,
    height: int = 150,
) -> ChartSpec:
    """Return a specification over the columns of a profile.

    Several runs differ in colour, dashes and shapes; one run needs no legend. With `level`
    there is a line for the isotropic value.
    """
    heading = {"text": title, "subtitle": hint} if hint else {"text": title}
    return _profile(axis, tuple(runs), level) | {"title": heading, "height": height}


@lru_cache(maxsize=16)
def _profile(axis: Axis, runs: tuple[str, ...], level: bool) -> ChartSpec:
    """Return what profiles along one axis share: building it takes longer than drawing it."""
    base = alt.Chart(alt.NamedData(ROWS)).encode(x=_horizontal(axis))
    names, several = list(runs), len(runs) > 1
    legend = alt.Legend(title=None) if several else None
    color = alt.Color("run:N", scale=alt.Scale(domain=names), legend=legend)
    dashes = [DASHES[place % len(DASHES)] for place in range(len(runs))]
    dash = alt.StrokeDash("run:N", scale=alt.Scale(domain=names, range=dashes), legend=legend)
    shapes = [SHAPES[place % len(SHAPES)] for place in range(len(runs))]
    shape = alt.Shape("run:N", scale=alt.Scale(domain=names, range=shapes), legend=legend)
    numbers = alt.Axis(labelExpr=NUMBERS)
    value = alt.Y("value:Q", title=None, scale=alt.Scale(zero=False), axis=numbers)
    low = alt.Y("low:Q", title=None, axis=numbers)
    tooltip = [
        alt.Tooltip("run:N"),
        alt.Tooltip("site:N"),
        alt.Tooltip("value:Q", format=".4~g"),
        alt.Tooltip("low:Q", format=".4~g"),
        alt.Tooltip("high:Q", format=".4~g"),
        alt.Tooltip("level:Q", title="isotropic", format=".4~g"),
        alt.Tooltip("n:Q", format=",d"),
    ]
    # Lines stop after the last block: the input of the final norm is another quantity.
    stretch = alt.Detail("stretch:N")
    layers = [
        base.mark_area(style="interval").encode(
            color=color, detail=stretch, y=low, y2=alt.Y2("high:Q")
        ),
        base.mark_rule(style="whisker").encode(color=color, y=low, y2=alt.Y2("high:Q")),
        base.mark_line(style="isotropic-line").encode(
            y=alt.Y("level:Q"),
            detail=[alt.Detail("run:N"), alt.Detail("stretch:N")],
            order=alt.Order("order:Q"),
        ),
        base.mark_line().encode(
            y=value, color=color, strokeDash=dash, detail=stretch, order=alt.Order("order:Q")
        ),
        base.mark_point(style="dot").encode(y=value, color=color, shape=shape, tooltip=tooltip),
    ]
    if not level:
        del layers[2]
    return alt.layer(*layers, width="container").to_dict(validate=False)


def _horizontal(axis: Axis) -> alt.X:
    title = axis.title or None
    if axis.labels:
        if title in COLUMNS:  # only the axis is called so: marks tell the column of that name
            words = alt.Axis(labelLimit=90, title=title)
            return alt.X(f"{axis.field}:O", sort=list(axis.labels), axis=words)
        words = alt.Axis(labelLimit=90)
        return alt.X(f"{axis.field}:O", sort=list(axis.labels), title=title, axis=words)
    kind = "symlog" if axis.logarithmic else "linear"
    numbers = alt.Axis(format="~s", tickCount=5)
    return alt.X(
        f"{axis.field}:Q", title=title, axis=numbers, scale=alt.Scale(type=kind, nice=False)
    )


# --- rows and switches --------------------------------------------------------------------
def profile_rows(exhibits: Sequence[Exhibit], quantity: Quantity) -> list[Row]:
    """Return a row for every run, site, variant and form, in order of depth."""
    forms = quantity.forms if quantity.debiased else {"": quantity.plain}
    found = [
        _row(exhibit, each, variant, form)
        for exhibit in exhibits
        for form, measure in forms.items()
        for variant, each in _by_variant(
            [r for r in exhibit.readings if r.measure == measure and not r.group]
        )
    ]
    return [row for _, row in sorted(found, key=lambda pair: pair[0])]


def profile_columns(rows: Sequence[Row]) -> Columns:
    """Return rows as columns, those of switches only where there is something to choose."""
    choices = [name for name in _CHOICES if any(row[name] != "" for row in rows)]
    return as_columns((*COLUMNS, *choices), rows)


def profile_switches(readings: Sequence[Reading]) -> tuple[Switch, ...]:
    """Return a switch for everything that these readings give a choice of."""
    found = variant_switch(each.variant for each in readings)
    if any(each.debiased for each in quantities(r.measure for r in readings)):
        forms = ((DEBIASED, "debiased"), (PLAIN, "as published"))
        found.append(Switch("form", "Estimate", forms, DEBIASED))
    steps = sorted({each.step for each in readings if each.step is not None})
    if len(steps) > 1:
        named = tuple((str(step), f"{step:,}") for step in steps)
        found.append(Switch("step", "Step", named, str(steps[-1])))
    parts = order_regions(Site.parse(each.site).region for each in readings)
    if len(parts) > 1:
        output = last_of_stream([each.site for each in readings])
        usual = Site.parse(output).region if output else parts[0]
        found.append(Switch("part", "Sites", tuple((part, part) for part in parts), usual))
    return tuple(found)


def _by_variant(readings: Sequence[Reading]) -> list[tuple[str, Reading]]:
    """Return readings with their variants; a site without variants appears in each."""
    have = {each.variant for each in readings}
    return fill_variants(readings, [name for name in VARIANTS if name in have])


def _row(exhibit: Exhibit, each: Reading, variant: str, form: str) -> tuple[int, Row]:
    """Return a row and its place along the depth of the model."""
    site = Site.parse(each.site)
    order = site.depth[0] * 1000 + site.depth[1]
    return order, {
        "run": exhibit.name,
        "site": each.site,
        "at": site.label,
        "order": order,
        "stretch": "norm" if site.is_final_norm else "blocks",
        "value": each.value,
        "low": each.low,
        "high": each.high,
        "level": exhibit.levels.get((each.site, each.variant, each.measure)),
        "n": each.n,
        "variant": variant,
        "part": site.region,
        "form": form,
        "step": "" if each.step is None else str(each.step),
    }

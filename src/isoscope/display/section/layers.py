"""Layer profile and series: each measure over depth, and over the steps of training."""

from collections.abc import Sequence

from isoscope.display.page.profile import (
    Axis,
    profile_charts,
    profile_columns,
    profile_rows,
    profile_switches,
)
from isoscope.display.page.quantity import Quantity
from isoscope.display.page.section import Columns, Exhibit, Panel, Section, site_switch
from isoscope.site import Site, order_sites
from isoscope.types import Reading

LAYERS_LEAD = (
    "Each measure at every site: the embeddings, the output of each block, and the final norm "
    "(in: its input, mid: normalized, before gain and bias, out: its output). The shaded band "
    "is the 95 % interval. The dotted line is the value of an isotropic cloud with the same "
    "width and the same effective number of rows."
)
SERIES_LEAD = "Each measure over the steps of the series, at the selected site."
LONG = 1000  # ratio of last to first step from which on the axis is logarithmic


def show_layers(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return one chart per measure, over depth."""
    readings = [each for exhibit in exhibits for each in exhibit.readings if not each.group]
    if not readings:
        return None
    sites = order_sites(each.site for each in readings)
    axis = Axis(tuple(dict.fromkeys(Site.parse(site).label for site in sites)))
    charts = profile_charts(
        "layers",
        exhibits,
        readings,
        axis,
        lambda each: profile_columns(profile_rows(exhibits, each)),
        over="over depth",
    )
    return Panel((LAYERS_LEAD,), profile_switches(readings), charts)


def show_series(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return one chart per measure over steps, where readings have several."""
    readings = [
        each
        for exhibit in exhibits
        for each in exhibit.readings
        if each.step is not None and not each.group
    ]
    if len({each.step for each in readings}) < 2:
        return None
    charts = profile_charts(
        "series",
        exhibits,
        readings,
        Axis(title="step", field="step", logarithmic=_is_long(readings)),
        lambda each: _step_columns(exhibits, each),
        over="over steps",
    )
    site = site_switch(order_sites(each.site for each in readings))
    others = [s for s in profile_switches(readings) if s.name not in ("step", "part")]
    return Panel((SERIES_LEAD,), (site, *others), charts)


def _step_columns(exhibits: Sequence[Exhibit], quantity: Quantity) -> Columns:
    """Return the rows that have a step, whose axis and order are the steps."""
    steps = [
        (row, int(step))
        for row in profile_rows(exhibits, quantity)
        if (step := row["step"]) not in ("", None)
    ]
    return profile_columns([row | {"step": step, "order": step} for row, step in steps])


def _is_long(readings: Sequence[Reading]) -> bool:
    """Whether steps span so much that the early ones need a logarithmic axis."""
    steps = sorted({each.step for each in readings if each.step is not None and each.step > 0})
    return len(steps) > 1 and steps[-1] / steps[0] >= LONG


LAYERS = Section("layers", "Layer profile", show_layers)
SERIES = Section("series", "Over training", show_series)

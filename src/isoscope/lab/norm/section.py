"""The section of the final norm: what normalising, gain and bias do to each measure."""

from collections.abc import Sequence

from isoscope.display.page.profile import (
    Axis,
    profile_charts,
    profile_columns,
    profile_rows,
    profile_switches,
)
from isoscope.display.page.quantity import Quantity
from isoscope.display.page.section import Columns, Exhibit, Panel, Section
from isoscope.site import Site

STAGES = {"in": "before", "mid": "between", "out": "after"}
LEAD = (
    "The same rows before the final norm, between (normalized, without gain and bias) and "
    "after it. To see the effects of gain and bias one at a time: isoscope norm MODEL --run RUN"
)
OPEN = 3


def show(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return one chart per measure, where a run has both sides of a final norm."""
    readings = [
        each
        for exhibit in exhibits
        for each in exhibit.readings
        if _stage(each.site) and not each.group
    ]
    if len({_stage(each.site) for each in readings}) < 2:
        return None
    labels = [s for s in STAGES.values() if any(_stage(each.site) == s for each in readings)]
    charts = profile_charts(
        "norm",
        exhibits,
        readings,
        Axis(tuple(labels)),
        lambda each: _columns(exhibits, each),
        over="before, between and after the final norm",
        visible=OPEN,
    )
    return Panel((LEAD,), profile_switches(readings), charts)


def _stage(name: str) -> str:
    site = Site.parse(name)
    return STAGES[site.part] if site.is_final_norm else ""


def _columns(exhibits: Sequence[Exhibit], quantity: Quantity) -> Columns:
    stages = [(row, _stage(str(row["site"]))) for row in profile_rows(exhibits, quantity)]
    return profile_columns([row | {"at": stage} for row, stage in stages if stage])


SECTION = Section("norm", "Final norm", show)

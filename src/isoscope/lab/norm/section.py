"""The section of the final norm: what normalising, gain and bias do to each measure."""

from collections.abc import Sequence

from isoscope.display.page.exhibit import Exhibit
from isoscope.display.page.measures import subjects
from isoscope.display.page.panel import Chart, Columns, Panel, Section
from isoscope.display.page.profile import Axis, profile
from isoscope.display.section.layers import columns, levelled, switches
from isoscope.site import Site

STAGES = {"in": "before", "mid": "between", "out": "after"}
LEAD = (
    "The same rows before the final norm, between (normalised, neither gain nor bias yet) and "
    "after it. What gain and bias do one after the other is printed by: isoscope norm MODEL "
    "--run RUN"
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
    runs = [exhibit.name for exhibit in exhibits]
    labels = [s for s in STAGES.values() if any(_stage(each.site) == s for each in readings)]
    charts = [
        Chart(
            name=f"norm-{subject.plain}",
            title=subject.title,
            spec=profile(
                subject.title,
                Axis(tuple(labels)),
                runs,
                says=subject.says,
                level=levelled(exhibits, subject),
            ),
            columns=_by_stage(columns(exhibits, subject)),
            alt=f"{subject.title} before, between and after the final norm.",
            folded=place >= OPEN,
        )
        for place, subject in enumerate(subjects(each.measure for each in readings))
    ]
    return Panel((LEAD,), switches(readings), tuple(charts))


def _stage(name: str) -> str:
    site = Site.parse(name)
    return STAGES[site.part] if site.is_final_norm else ""


def _by_stage(table: Columns) -> Columns:
    kept = [place for place, site in enumerate(table["site"]) if _stage(site)]
    table = {name: [cells[place] for place in kept] for name, cells in table.items()}
    table["at"] = [_stage(site) for site in table["site"]]
    return table


SECTION = Section("norm", "Final norm", show)

"""Series: each measure over the steps of a training run, at a chosen site."""

from collections.abc import Sequence

from isoscope.display.page.exhibit import Exhibit
from isoscope.display.page.measures import Subject, subjects
from isoscope.display.page.panel import Chart, Columns, Panel, Section, Switch
from isoscope.display.page.profile import Axis, profile
from isoscope.display.section.layers import OPEN, columns, levelled, switches
from isoscope.site import last_of_stream, order_sites
from isoscope.types import Reading

LEAD = "Each measure over the steps of the series, at the site chosen."


def show(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return one chart a measure where readings have steps."""
    stepped = [
        each
        for exhibit in exhibits
        for each in exhibit.readings
        if each.step is not None and not each.group
    ]
    if len({each.step for each in stepped}) < 2:
        return None
    runs = [exhibit.name for exhibit in exhibits]
    charts = [
        Chart(
            name=f"series-{subject.plain}",
            title=subject.title,
            spec=profile(
                subject.title,
                Axis(title="step", field="step", logarithmic=_wide(stepped)),
                runs,
                says=subject.says,
                level=levelled(exhibits, subject),
            ),
            columns=_by_step(exhibits, subject),
            alt=f"{subject.title} over steps. {subject.says}".strip(),
            folded=place >= OPEN,
        )
        for place, subject in enumerate(subjects(each.measure for each in stepped))
    ]
    sites = order_sites(each.site for each in stepped)
    output = last_of_stream(sites) or sites[0]
    chooser = Switch("site", "Site", tuple((site, site) for site in sites), output)
    others = [s for s in switches(stepped, parts=False) if s.name != "step"]
    return Panel((LEAD,), (chooser, *others), tuple(charts))


def _by_step(exhibits: Sequence[Exhibit], subject: Subject) -> Columns:
    table = columns(exhibits, subject)
    kept = [place for place, step in enumerate(table.get("step", ())) if step]
    table = {name: [cells[place] for place in kept] for name, cells in table.items()}
    table["step"] = [int(step) for step in table.get("step", ())]
    table["order"] = table["step"]
    for name in ("part", "at"):
        table.pop(name)
    return table


def _wide(readings: Sequence[Reading]) -> bool:
    """Whether steps span so much that a logarithm shows the early ones."""
    steps = sorted({each.step for each in readings if each.step is not None and each.step > 0})
    return len(steps) > 1 and steps[-1] / steps[0] >= 1000


SECTION = Section("series", "Over training", show)

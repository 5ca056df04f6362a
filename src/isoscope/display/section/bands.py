"""Bands: the mean cosine among rare and frequent tokens, among early and late ones."""

from collections.abc import Sequence

from isoscope.display.page.profile import COLUMNS, Axis, profile
from isoscope.display.page.quantity import title_of
from isoscope.display.page.section import (
    Chart,
    Columns,
    Exhibit,
    Panel,
    Section,
    as_columns,
    site_switch,
    variant_switch,
)
from isoscope.site import order_sites
from isoscope.types import Reading

LEAD = (
    "The same measure among the tokens of one band only, at the selected site. Frequency bands "
    "group tokens by their share of the corpus; position bands group them by their position in "
    "the document, counted from 0."
)
FAMILIES = {  # first word of a group: end of the title, title of the axis
    "frequency": ("by frequency", "share of the corpus"),
    "position": ("by position", "position in the document"),
}


def show(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return one chart per measure and family of bands."""
    readings = [each for exhibit in exhibits for each in exhibit.readings if _family(each)]
    if not readings:
        return None
    site = site_switch(order_sites(each.site for each in readings))
    switches = (site, *variant_switch(each.variant for each in readings))
    kinds = dict.fromkeys((each.measure, _family(each)) for each in readings)
    return Panel((LEAD,), switches, tuple(_chart(exhibits, *kind) for kind in kinds))


def _chart(exhibits: Sequence[Exhibit], measure: str, family: str) -> Chart:
    by, axis = FAMILIES[family]
    columns = _columns(exhibits, measure, family)
    labels = tuple(str(label) for label in dict.fromkeys(columns["at"]))
    title = f"{title_of(measure)} {by}"
    runs = [exhibit.name for exhibit in exhibits]
    return Chart(
        name=f"bands-{family}-{measure}",
        title=title,
        spec=profile(title, Axis(labels, axis), runs, level=False),
        columns=columns,
        alt=f"{title} of the token, one point per band.",
        half=True,
    )


def _columns(exhibits: Sequence[Exhibit], measure: str, family: str) -> Columns:
    """Return one row per run, site, variant and band."""
    found = [
        (exhibit.name, each)
        for exhibit in exhibits
        for each in exhibit.readings
        if (each.measure, _family(each)) == (measure, family)
    ]
    order = {group: at for at, group in enumerate(dict.fromkeys(r.group for _, r in found))}
    rows = (
        {
            "run": run,
            "site": each.site,
            "at": each.group.removeprefix(f"{family} "),
            "order": order[each.group],
            "stretch": "",
            "value": each.value,
            "low": each.low,
            "high": each.high,
            "level": None,
            "n": each.n,
            "variant": each.variant,
        }
        for run, each in found
    )
    return as_columns((*COLUMNS, "variant"), rows)


def _family(each: Reading) -> str:
    """Return the family of bands a reading belongs to; empty for all rows and other groups."""
    first = each.group.partition(" ")[0]
    return first if first in FAMILIES and each.step is None else ""


SECTION = Section("bands", "Frequency and position", show)

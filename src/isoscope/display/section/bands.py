"""Bands: the mean cosine among rare and frequent tokens, among early and late ones."""

from collections.abc import Sequence

from isoscope.display.page.exhibit import Exhibit
from isoscope.display.page.measures import titled
from isoscope.display.page.panel import Chart, Columns, Panel, Section, Switch
from isoscope.display.page.profile import Axis, empty_rows, profile
from isoscope.display.section.layers import VARIANT_NAMES
from isoscope.site import last_of_stream, order_sites
from isoscope.types import VARIANTS, Reading

LEAD = (
    "The same measure among the tokens of one band only, at the site chosen. Bands of "
    "frequency go by the share of the corpus that is that token, bands of position by where "
    "a token stands in its document, counted from 0."
)
FAMILIES = {  # first word of a group, and what lies along the bottom
    "frequency": ("by frequency", "share of the corpus"),
    "position": ("by position", "position in the document"),
}


def show(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return a chart for each measure and family of bands."""
    readings = [each for exhibit in exhibits for each in exhibit.readings if _family(each)]
    if not readings:
        return None
    sites = order_sites(each.site for each in readings)
    output = last_of_stream(sites) or sites[0]
    switches = [Switch("site", "Site", tuple((site, site) for site in sites), output)]
    variants = [v for v in VARIANTS if any(each.variant == v for each in readings)]
    if len(variants) > 1:
        named = tuple((name, VARIANT_NAMES[name]) for name in variants)
        switches.append(Switch("variant", "Rows", named, variants[0]))
    kinds = dict.fromkeys((each.measure, _family(each)) for each in readings)
    charts = [_chart(exhibits, readings, *kind) for kind in kinds]
    return Panel((LEAD,), tuple(switches), tuple(charts))


def _chart(
    exhibits: Sequence[Exhibit], readings: Sequence[Reading], measure: str, family: str
) -> Chart:
    by, along = FAMILIES[family]
    groups = [r.group for r in readings if (r.measure, _family(r)) == (measure, family)]
    labels = tuple(dict.fromkeys(group.removeprefix(f"{family} ") for group in groups))
    title = f"{titled(measure)} {by}"
    return Chart(
        name=f"bands-{family}-{measure}",
        title=title,
        spec=profile(
            title, Axis(labels, along), [exhibit.name for exhibit in exhibits], level=False
        ),
        columns=columns(exhibits, measure, family),
        alt=f"{title} of the token, one point a band.",
        half=True,
    )


def columns(exhibits: Sequence[Exhibit], measure: str, family: str) -> Columns:
    """Return one row a run, site, variant and band."""
    table = empty_rows() | {"variant": []}
    for exhibit in exhibits:
        found = [r for r in exhibit.readings if (r.measure, _family(r)) == (measure, family)]
        order = {group: at for at, group in enumerate(dict.fromkeys(r.group for r in found))}
        for each in found:
            cells = {
                "run": exhibit.name,
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
            for name, cell in cells.items():
                table[name].append(cell)
    return table


def _family(each: Reading) -> str:
    """Return the kind of band a reading is of; nothing for all rows, or for another group."""
    first = each.group.partition(" ")[0]
    return first if first in FAMILIES and each.step is None else ""


SECTION = Section("bands", "Frequency and position", show)

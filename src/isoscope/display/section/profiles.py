"""Profiles: each measure over depth, over the steps of training, and over bands of tokens."""

from collections.abc import Sequence
from dataclasses import replace

from isoscope.display.page.profile import (
    COLUMNS,
    Axis,
    profile,
    profile_charts,
    profile_columns,
    profile_rows,
    profile_switches,
)
from isoscope.display.page.quantity import Quantity, title_of
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
from isoscope.site import HEAD, Site, order_sites
from isoscope.types import Reading

LAYERS_LEAD = (
    "Each measure at every site: the embeddings, the output of each block, and the final norm "
    "(in: its input, mid: normalized, before gain and bias, out: its output). The shaded band "
    "is the 95 % interval. The dotted line is the value of an isotropic cloud with the same "
    "width and the same effective number of rows."
)
SERIES_LEAD = "Each measure over the steps of the series, at the selected site."
BANDS_LEAD = (
    "The same measure among the tokens of one band only, at the selected site. Frequency bands "
    "group tokens by their share of the corpus; position bands group them by their position in "
    "the document, counted from 0."
)
LONG = 1000  # ratio of last to first step from which on the axis is logarithmic
FAMILIES = {  # first word of a group: end of the title, title of the axis
    "frequency": ("by frequency", "share of the corpus"),
    "position": ("by position", "position in the document"),
}


def show_layers(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return one chart per measure, over depth."""
    exhibits = [without_heads(each) for each in exhibits]
    readings = [each for exhibit in exhibits for each in exhibit.readings if not each.group]
    if not readings:
        return None
    sites = order_sites(each.site for each in readings)
    axis = Axis(tuple(dict.fromkeys(Site.parse(site).label for site in sites)), "site")
    charts = profile_charts(
        "layers",
        exhibits,
        readings,
        axis,
        lambda each: profile_columns(profile_rows(exhibits, each)),
        over="over depth",
    )
    return Panel((LAYERS_LEAD,), profile_switches(readings), charts)


def show_depth(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return the charts of several sites: one alone has no depth, and its numbers a table."""
    sites = {r.site for each in exhibits for r in each.readings if not r.group}
    return show_layers(exhibits) if len(sites) > 1 else None


def show_series(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return one chart per measure over steps, where readings have several."""
    exhibits = [without_heads(each) for each in exhibits]
    readings = [
        each
        for exhibit in exhibits
        for each in exhibit.readings
        if each.step is not None and not each.group
    ]
    steps = sorted({each.step for each in readings if each.step is not None})
    if len(steps) < 2:
        return None
    after = [step for step in steps if step > 0]
    long = len(after) > 1 and after[-1] / after[0] >= LONG  # the early ones need more room
    charts = profile_charts(
        "series",
        exhibits,
        readings,
        Axis(title="step", field="step", logarithmic=long),
        lambda each: _step_columns(exhibits, each),
        over="over steps",
    )
    site = site_switch(order_sites(each.site for each in readings))
    others = [s for s in profile_switches(readings) if s.name not in ("step", "part")]
    return Panel((SERIES_LEAD,), (site, *others), charts)


def without_heads(exhibit: Exhibit) -> Exhibit:
    """Return an exhibit without attention heads: hundreds of them are a map, not a profile."""
    kept = [each for each in exhibit.readings if Site.parse(each.site).family != HEAD]
    return exhibit if len(kept) == len(exhibit.readings) else replace(exhibit, readings=kept)


def _step_columns(exhibits: Sequence[Exhibit], quantity: Quantity) -> Columns:
    """Return the rows that have a step, whose axis and order are the steps."""
    steps = [
        (row, int(step))
        for row in profile_rows(exhibits, quantity)
        if (step := row["step"]) not in ("", None)
    ]
    return profile_columns([row | {"step": step, "order": step} for row, step in steps])


def show_bands(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return one chart per measure and family of bands."""
    readings = [each for exhibit in exhibits for each in exhibit.readings if _family(each)]
    if not readings:
        return None
    site = site_switch(order_sites(each.site for each in readings))
    switches = (site, *variant_switch(each.variant for each in readings))
    kinds = dict.fromkeys((each.measure, _family(each)) for each in readings)
    return Panel((BANDS_LEAD,), switches, tuple(_band_chart(exhibits, *kind) for kind in kinds))


def _band_chart(exhibits: Sequence[Exhibit], measure: str, family: str) -> Chart:
    by, axis = FAMILIES[family]
    columns = _band_columns(exhibits, measure, family)
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


def _band_columns(exhibits: Sequence[Exhibit], measure: str, family: str) -> Columns:
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


LAYERS = Section("layers", "Layer profile", show_layers, show_on_page=show_depth)
SERIES = Section("series", "Over training", show_series)
BANDS = Section("bands", "Frequency and position", show_bands)

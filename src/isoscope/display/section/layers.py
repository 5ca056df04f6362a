"""Layer profile: each measure over depth, with its interval and the isotropic level."""

from collections.abc import Sequence

from isoscope.display.page.exhibit import Exhibit
from isoscope.display.page.measures import DEBIASED, PLAIN, Subject, subjects
from isoscope.display.page.panel import Chart, Columns, Panel, Section, Switch
from isoscope.display.page.profile import Axis, empty_rows, profile
from isoscope.site import Site, last_of_stream, order_regions, order_sites
from isoscope.types import VARIANTS, Reading

OPEN = 6  # charts shown before all are asked for
VARIANT_NAMES = {"all": "all tokens", "no-special": "no special tokens", "no-sink": "no sinks"}
LEAD = (
    "Each measure at every site, from the embeddings through the blocks to before (in), "
    "inside (mid) and after (out) the final norm. The band is the 95 % interval; the dotted "
    "line is what an isotropic cloud of the same size, width and documents would show."
)


def show(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return one chart a measure."""
    readings = [each for exhibit in exhibits for each in exhibit.readings if not each.group]
    if not readings:
        return None
    sites = order_sites(each.site for each in readings)
    labels = list(dict.fromkeys(Site.parse(site).label for site in sites))
    runs = [exhibit.name for exhibit in exhibits]
    charts = [
        Chart(
            name=f"layers-{subject.plain}",
            title=subject.title,
            spec=profile(
                subject.title,
                Axis(tuple(labels)),
                runs,
                says=subject.says,
                level=levelled(exhibits, subject),
            ),
            columns=columns(exhibits, subject),
            alt=f"{subject.title} over depth. {subject.says}".strip(),
            folded=place >= OPEN,
        )
        for place, subject in enumerate(subjects(each.measure for each in readings))
    ]
    return Panel((LEAD,), switches(readings), tuple(charts))


def switches(readings: Sequence[Reading], *, parts: bool = True) -> tuple[Switch, ...]:
    """Return the switches that these readings give a choice for."""
    found: list[Switch] = []
    variants = [v for v in VARIANTS if any(each.variant == v for each in readings)]
    if len(variants) > 1:
        named = tuple((name, VARIANT_NAMES[name]) for name in variants)
        found.append(Switch("variant", "Rows", named, variants[0]))
    measures = {each.measure for each in readings}
    if any(s.debiased for s in subjects(measures)):
        forms = ((DEBIASED, "debiased"), (PLAIN, "as published"))
        found.append(Switch("form", "Estimate", forms, DEBIASED))
    steps = sorted({each.step for each in readings if each.step is not None})
    if len(steps) > 1:
        named = tuple((str(step), f"{step:,}") for step in steps)
        found.append(Switch("step", "Step", named, str(steps[-1])))
    names = order_regions(Site.parse(each.site).region for each in readings)
    if parts and len(names) > 1:
        output = last_of_stream([each.site for each in readings])
        usual = Site.parse(output).region if output else names[0]
        found.append(Switch("part", "Sites", tuple((name, name) for name in names), usual))
    return tuple(found)


def columns(exhibits: Sequence[Exhibit], subject: Subject) -> Columns:
    """Return the rows of one chart: every run, site, variant and form."""
    table = empty_rows() | {"variant": [], "part": [], "form": [], "step": []}
    names = set(subject.forms.values())
    for exhibit in exhibits:
        found = [r for r in exhibit.readings if r.measure in names and not r.group]
        for form, measure in subject.forms.items():
            rows = filled([each for each in found if each.measure == measure])
            for variant, each in rows:
                _append(table, exhibit, each, variant, form)
    if not subject.debiased:  # obeys no such switch: one copy is enough
        keep = [form == PLAIN for form in table.pop("form")]
        table = {
            name: [cell for cell, kept in zip(cells, keep, strict=True) if kept]
            for name, cells in table.items()
        }
    if not any(table["step"]):
        del table["step"]
    order = sorted(range(len(table["order"])), key=lambda i: table["order"][i])
    return {name: [cells[i] for i in order] for name, cells in table.items()}


def levelled(exhibits: Sequence[Exhibit], subject: Subject) -> bool:
    """Whether it is known what an isotropic cloud would show."""
    names = set(subject.forms.values())
    return any(measure in names for e in exhibits for _, _, measure in e.levels)


def filled(readings: Sequence[Reading]) -> list[tuple[str, Reading]]:
    """Return readings with their variants; a site without variants stands in each."""
    have = {(each.site, each.variant, each.step) for each in readings}
    variants = [v for v in VARIANTS if any(each.variant == v for each in readings)]
    found = [(each.variant, each) for each in readings]
    for each in readings:
        if each.variant == "all":
            missing = [v for v in variants if (each.site, v, each.step) not in have]
            found += [(variant, each) for variant in missing]
    return found


def _append(table: Columns, exhibit: Exhibit, each: Reading, variant: str, form: str) -> None:
    site = Site.parse(each.site)
    level = exhibit.levels.get((each.site, each.variant, each.measure))
    cells = {
        "run": exhibit.name,
        "site": each.site,
        "at": site.label,
        "order": site.depth[0] * 1000 + site.depth[1],
        "stretch": "norm" if site.is_final_norm else "blocks",
        "value": each.value,
        "low": each.low,
        "high": each.high,
        "level": level,
        "n": each.n,
        "variant": variant,
        "part": site.region,
        "form": form,
        "step": "" if each.step is None else str(each.step),
    }
    for name, cell in cells.items():
        table[name].append(cell)


SECTION = Section("layers", "Layer profile", show)

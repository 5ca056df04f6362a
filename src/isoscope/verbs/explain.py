"""The verb of causes: why each site of a run is anisotropic."""

import csv
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoscope.errors import StoreError, TooFewRowsError, UndefinedError

if TYPE_CHECKING:
    from isoscope.explain.cause import Cause
    from isoscope.report.table import Column, Table

TOKENLESS = "frequency and position are not told: this run has no bands of tokens"
UNCOUNTED = "frequency is not told: the tokens of this run were not counted"


class Causes(list["Cause"]):
    """A list of causes that shows itself as a table and converts to other formats."""

    def __init__(self, causes: Iterable["Cause"] = (), *, left_out: Iterable[str] = ()) -> None:
        super().__init__(causes)
        self.left_out = tuple(left_out)  # sites of which nothing can be told, and why

    @property
    def table(self) -> "Table":
        """A line a site where there are several, else a line a cause."""
        from isoscope.report.escape import plain
        from isoscope.report.table import Table

        sites = dict.fromkeys(each.site for each in self)
        columns = _by_site(self) if len(sites) > 1 else _by_cause(self)
        shared = [f"run {plain(self[0].run)}"] if self else []
        if len(sites) == 1:
            shared += [f"site {plain(self[0].site)}", f"variant {self[0].variant}"]
            shared += [f"mean cosine {self[0].mean_cosine:.3g}"]
        elif self:
            shared += [f"variant {self[0].variant}", "shares of the mean cosine"]
        warnings = tuple(dict.fromkeys(text for each in self for text in each.warnings))
        left_out = tuple(plain(text) for text in self.left_out)
        return Table(", ".join(shared), tuple(columns), warnings, left_out)

    def to_dict(self) -> list[dict[str, Any]]:
        """Plain dictionaries, with the keys of `--json`."""
        return [each.to_dict() for each in self]

    def to_json(self) -> str:
        """One JSON object a line."""
        return "".join(json.dumps(each, allow_nan=False) + "\n" for each in self.to_dict())

    def to_csv(self) -> str:
        """Comma-separated values; what is named is one cell, as JSON."""
        from dataclasses import fields

        from isoscope.explain.cause import Cause
        from isoscope.report.escape import plain

        lines = StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(field.name for field in fields(Cause))
        for each in self.to_dict():
            cells = each | {
                "named": json.dumps(each["named"]),
                "warnings": "; ".join(each["warnings"]),
            }
            writer.writerow(plain(v) if isinstance(v, str) else v for v in cells.values())
        return lines.getvalue()

    def to_markdown(self) -> str:
        """A Markdown table."""
        from isoscope.report.formats import as_markdown

        return as_markdown(self.table)

    def to_latex(self) -> str:
        """A booktabs table."""
        from isoscope.report.latex import as_latex

        return as_latex(self.table)

    def __str__(self) -> str:
        from isoscope.report.formats import as_text

        return as_text(self.table).removesuffix("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from isoscope.report.html import as_html

        return as_html(self.table)


def explain(
    run: str | os.PathLike[str],
    *,
    sites: Sequence[str] | None = None,
    variant: str = "all",
) -> Causes:
    """Say how much of the mean cosine of each site is owed to which cause.

    The causes are taken in a fixed order (sinks, dimensions, frequency, position, mean) and
    their shares add up to one.
    """
    from isoscope.registry import unknown
    from isoscope.store import load
    from isoscope.types import VARIANTS

    if variant not in VARIANTS:
        raise unknown("variant", variant, VARIANTS)
    whole = load(run)
    for site in sites or ():
        if site not in whole.sites:
            raise unknown("site", site, whole.sites)
    found: list[Cause] = []
    left_out: list[str] = []
    for site in sites or whole.sites:
        held = whole.survey_of(site).held
        try:
            found += explained(held, site, variant, Path(run).name)
        except (UndefinedError, TooFewRowsError) as problem:
            left_out.append(f"{site}: {problem.problem}")
    if not found:
        raise UndefinedError(
            left_out[0] if left_out else f"expected sites in {str(run)!r}, got none",
            hint="there is no mean cosine to explain at any site of this run",
            slug="nothing-to-explain",
        )
    return Causes(found, left_out=left_out)


def explained(
    held: Mapping[tuple[str, str], Mapping[Any, Any]], site: str, variant: str, run: str
) -> list["Cause"]:
    """Return the causes of one site, from what a survey holds of its classes of rows."""
    from isoscope.accumulate.directions import Directions
    from isoscope.accumulate.sinks import Sinks
    from isoscope.explain.attribution import attributed
    from isoscope.explain.cause import causes
    from isoscope.explain.cloud import Cloud
    from isoscope.types import VARIANTS

    classes = [held[site, each] for each in VARIANTS[variant] if (site, each) in held]
    ordinary = [
        held[site, each]
        for each in VARIANTS[variant]
        if (site, each) in held and "sink" not in each
    ]
    sinks = [here for here in classes if not any(here is each for each in ordinary)]
    if not classes:  # vectors, matrices and pooled texts have no classes of rows
        ordinary = [held[site, "all"]] if (site, "all") in held else []
    if not ordinary or any(Directions not in here for here in ordinary):
        raise StoreError(
            f"expected sums of directions at {site}, got a run without them",
            hint="measure again, with mean-cosine among the measures",
            slug="explain-without-directions",
        )
    seen = _seen(ordinary)
    pull: Any = _merged(sinks, Directions)
    cloud = Cloud.of(seen, pull)
    table: Any = _merged(sinks, Sinks)
    warnings = () if seen.counted else (UNCOUNTED if seen.banded else TOKENLESS,)
    return causes(
        attributed(cloud),
        table.finalize().sinks if table is not None else (),
        run=run,
        site=site,
        variant=variant,
        warnings=warnings,
    )


def _seen(classes: list[Mapping[Any, Any]]) -> Any:
    from isoscope.accumulate.bands import Bands
    from isoscope.accumulate.crossing import Crossing
    from isoscope.accumulate.directions import Directions
    from isoscope.explain.cloud import Seen

    pointing: Any = _merged(classes, Directions)
    return Seen(pointing, _merged(classes, Bands), _merged(classes, Crossing))


def _merged(classes: list[Mapping[Any, Any]], kind: type[Any]) -> Any:
    """Return what the classes have seen together; None where one has not kept it."""
    from isoscope.accumulate import merged

    if not classes or any(kind not in here for here in classes):
        return None
    return merged(here[kind] for here in classes)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{_whole(share)} %"


def _whole(share: float) -> int:
    """Return per cent; as a whole number there is no minus zero."""
    return round(100 * share)


def _by_cause(causes: Sequence["Cause"]) -> list["Column"]:
    from isoscope.report.escape import plain
    from isoscope.report.table import Column

    ends = [
        "" if c.low is None or c.high is None else f"[{_whole(c.low)}, {_whole(c.high)}]"
        for c in causes
    ]
    columns = [
        Column("cause", tuple(each.cause for each in causes), words=True),
        Column("share", tuple(_percent(each.share) for each in causes)),
        Column("95 % interval", tuple(ends)),
        Column("what", tuple(plain(each.detail) for each in causes), words=True),
    ]
    return [column for column in columns if any(column.cells)]


def _by_site(causes: Sequence["Cause"]) -> list["Column"]:
    from isoscope.explain.attribution import ORDER
    from isoscope.report.escape import plain
    from isoscope.report.table import Column

    sites: dict[str, dict[str, Cause]] = {}
    for each in causes:
        sites.setdefault(each.site, {})[each.cause] = each
    rows = list(sites.values())
    shares = [
        Column(
            name,
            tuple(_percent(row[name].share) if name in row else "" for row in rows),
        )
        for name in ORDER
    ]
    cosines = tuple(f"{next(iter(row.values())).mean_cosine:.3f}" for row in rows)
    named = tuple(
        plain(row["dimensions"].detail) if row["dimensions"].named else "" for row in rows
    )
    columns = [
        Column("site", tuple(map(plain, sites)), words=True),
        Column("mean cosine", cosines),
        *shares,
        Column("dimensions that stand out", named, words=True),
    ]
    return [column for column in columns if any(column.cells)]

"""The verb of causes: why each site of a run is anisotropic."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoscope.display.escape import plain
from isoscope.display.frames import Field, Line, integers, numbers, texts
from isoscope.display.results import RecordLayout, Results
from isoscope.display.table import Column, Table
from isoscope.errors import StoreError, TooFewRowsError, UndefinedError

if TYPE_CHECKING:
    from isoscope.causes.cause import Cause

TOKENLESS = "frequency and position are not told: this run has no bands of tokens"
UNCOUNTED = "frequency is not told: the tokens of this run were not counted"


def _tables(causes: "Results[Cause]") -> tuple[Table, ...]:
    """One line per site where there are several, else one per cause."""
    sites = dict.fromkeys(each.site for each in causes)
    columns = _by_site(causes) if len(sites) > 1 else _by_cause(causes)
    shared = [f"run {plain(causes[0].run)}"] if causes else []
    if len(sites) == 1:
        shared += [f"site {plain(causes[0].site)}", f"variant {causes[0].variant}"]
        shared += [f"mean cosine {causes[0].mean_cosine:.3g}"]
    elif causes:
        shared += [f"variant {causes[0].variant}", "shares of the mean cosine"]
    warnings = tuple(dict.fromkeys(text for each in causes for text in each.warnings))
    left_out = tuple(plain(text) for text in causes.left_out)
    return (Table(", ".join(shared), tuple(columns), warnings, left_out),)


def _record(cause: "Cause") -> Line:
    return cause.to_dict()


CAUSES = RecordLayout(
    name="causes",
    tables=_tables,
    to_dict=_record,
    fields=(
        *texts("run", "site", "variant", "cause"),
        *numbers("share", "low", "high", "mean_cosine"),
        *integers("n", "d"),
        Field("detail"),
        Field("named", "json"),
        Field("warnings", "texts", joined=True),
    ),
)


def explain(
    run: str | os.PathLike[str],
    *,
    sites: Sequence[str] | None = None,
    variant: str = "all",
) -> "Results[Cause]":
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
    return Results(found, CAUSES, left_out=left_out)


def explained(
    held: Mapping[tuple[str, str], Mapping[Any, Any]], site: str, variant: str, run: str
) -> list["Cause"]:
    """Return the causes of one site, from what a survey holds of its classes of rows."""
    from isoscope.accumulate.directions import Directions
    from isoscope.accumulate.sinks import Sinks
    from isoscope.causes.attribution import attribute
    from isoscope.causes.cause import causes
    from isoscope.causes.cloud import CloudSums
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
    cloud = CloudSums.of(seen, pull)
    table: Any = _merged(sinks, Sinks)
    warnings = () if seen.has_frequencies else (UNCOUNTED if seen.has_bands else TOKENLESS,)
    return causes(
        attribute(cloud),
        table.finalize().sinks if table is not None else (),
        run=run,
        site=site,
        variant=variant,
        warnings=warnings,
    )


def _seen(classes: list[Mapping[Any, Any]]) -> Any:
    from isoscope.accumulate.bands import Bands, Crossing
    from isoscope.accumulate.directions import Directions
    from isoscope.causes.cloud import BandedDirections

    pointing: Any = _merged(classes, Directions)
    return BandedDirections(pointing, _merged(classes, Bands), _merged(classes, Crossing))


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


def _by_cause(causes: Sequence["Cause"]) -> list[Column]:
    ends = [
        "" if c.low is None or c.high is None else f"[{_whole(c.low)}, {_whole(c.high)}]"
        for c in causes
    ]
    columns = [
        Column("cause", tuple(each.cause for each in causes), words=True),
        Column("share", tuple(_percent(each.share) for each in causes)),
        Column("95 % interval", tuple(ends)),
        Column("what", tuple(plain(each.detail) for each in causes), words=True, fold=24),
    ]
    return [column for column in columns if any(column.cells)]


def _by_site(causes: Sequence["Cause"]) -> list[Column]:
    from isoscope.causes.attribution import ORDER

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
        Column("site", tuple(map(plain, sites)), words=True, fold=12),
        Column("mean cosine", cosines),
        *shares,
        Column("dimensions that stand out", named, words=True),
    ]
    return [column for column in columns if any(column.cells)]

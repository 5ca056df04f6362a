"""How causes look: one table per scale, by site, or by cause where there is one site."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from isoscope.causes.cause import Cause
from isoscope.display import (
    Column,
    Field,
    RecordLayout,
    Results,
    Table,
    integers,
    non_empty,
    numbers,
    plain,
    texts,
)
from isoscope.types import CAUSE_ORDER, DEPENDENCE, REMOVAL, scale_of

CAPTIONS = {
    REMOVAL: "by removal: shares of the mean cosine",
    DEPENDENCE: "by dependence: shares of the mean cosine of rows of the same frequency and "
    "position",
}
NOTES = {
    REMOVAL: (
        "sinks: how much the mean cosine falls when sink rows are excluded",
        "dimensions: how much of it the dimensions that stand out carry; falls to: the mean "
        "cosine when they are set to zero in every row",
    ),
    DEPENDENCE: (
        "frequency, position: how much less alike rows are when their partner is drawn from "
        "all rows; first and last: before and after the other cause; share: the mean of both",
        "mean: what is left, whatever the frequency and position; these shares add up to 100 "
        "%, and are not to be added to those by removal",
    ),
}


class Warned(Protocol):
    """A record of a site that may have warnings."""

    @property
    def site(self) -> str:
        """The site it is about."""
        ...

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is to be said of it."""
        ...


def warnings_with_sites(records: Iterable[Warned]) -> tuple[str, ...]:
    """Return each warning once; one that is not of all sites names those it is of."""
    sites: dict[str, dict[str, None]] = {}
    every: dict[str, None] = {}
    for each in records:
        every[each.site] = None
        for text in each.warnings:
            sites.setdefault(text, {})[each.site] = None
    return tuple(
        plain(text if len(here) == len(every) else f"{', '.join(here)}: {text}")
        for text, here in sites.items()
    )


def _tables(causes: Results[Cause]) -> tuple[Table, ...]:
    """One table per scale; one line per site where there are several, else one per cause."""
    sites = dict.fromkeys(each.site for each in causes)
    shared = [f"run {plain(causes[0].run)}"] if causes else []
    if len(sites) == 1:
        shared += [f"site {plain(causes[0].site)}"]
    if causes:
        shared += [f"variant {causes[0].variant}"]
    warnings = warnings_with_sites(causes)
    left_out = tuple(plain(text) for text in causes.left_out)
    there = [scale for scale in CAPTIONS if any(each.scale == scale for each in causes)]
    tables = [
        _table([each for each in causes if each.scale == scale], scale, shared, len(sites) > 1)
        for scale in there
    ]
    if not tables:
        return (Table("", (), warnings, left_out),)
    *before, (caption, columns, notes) = tables
    last = Table(caption, columns, warnings, left_out, notes)
    return (*(Table(c, columns, notes=n) for c, columns, n in before), last)


def _table(
    causes: Sequence[Cause], scale: str, shared: Sequence[str], several: bool
) -> tuple[str, tuple[Column, ...], tuple[str, ...]]:
    """Return the caption, the columns and the notes of the table of one scale."""
    columns = _by_site(causes) if several else _by_cause(causes)
    caption = ", ".join([*shared, CAPTIONS[scale]])
    if not several:
        caption += f", {causes[0].whole:.3g}"
    return caption, non_empty(columns), NOTES[scale]


CAUSES = RecordLayout(
    name="causes",
    tables=_tables,
    to_dict=Cause.to_dict,
    fields=(
        *texts("run", "site", "variant", "cause", "scale"),
        *numbers("share", "low", "high", "whole", "mean_cosine"),
        *integers("n", "d"),
        Field("detail"),
        *numbers("first", "first_low", "first_high", "last", "last_low", "last_high"),
        *numbers("alone", "alone_low", "alone_high"),
        *numbers("falls_to", "falls_to_low", "falls_to_high"),
        Field("named", "json"),
        Field("warnings", "texts", joined=True),
    ),
)


def _percent(share: float | None) -> str:
    """Return per cent; as a whole number there is no minus zero."""
    return "" if share is None else f"{round(100 * share)} %"


def _interval(cause: Cause) -> str:
    if cause.low is None or cause.high is None:
        return ""
    return f"[{round(100 * cause.low)}, {round(100 * cause.high)}]"


def _by_cause(causes: Sequence[Cause]) -> list[Column]:
    return [
        Column("cause", tuple(each.cause for each in causes), words=True),
        Column("share", tuple(_percent(each.share) for each in causes)),
        Column("95 % interval", tuple(map(_interval, causes))),
        Column("first", tuple(_percent(each.first) for each in causes)),
        Column("last", tuple(_percent(each.last) for each in causes)),
        Column("falls to", tuple(map(_falls_to, causes))),
        Column("what", tuple(plain(each.detail) for each in causes), words=True, fold=24),
    ]


def _falls_to(cause: Cause) -> str:
    return "" if cause.falls_to is None else f"{cause.falls_to:.3f}"


def _by_site(causes: Sequence[Cause]) -> list[Column]:
    sites: dict[str, dict[str, Cause]] = {}
    for each in causes:
        sites.setdefault(each.site, {})[each.cause] = each
    rows = list(sites.values())
    shares = [
        Column(
            name,
            tuple(_with_interval(row[name]) if name in row else "" for row in rows),
        )
        for name in CAUSE_ORDER
        if scale_of(name) == causes[0].scale
    ]
    first = [next(iter(row.values())) for row in rows]
    dimensions = [row.get("dimensions") for row in rows]
    return [
        Column("site", tuple(map(plain, sites)), words=True, fold=12),
        Column("mean cosine", tuple(f"{each.mean_cosine:.3f}" for each in first)),
        *shares,
        Column("falls to", tuple("" if d is None else _falls_to(d) for d in dimensions)),
        Column("dimensions that stand out", tuple(map(_names, dimensions)), words=True),
    ]


def _with_interval(cause: Cause) -> str:
    return " ".join(filter(None, (_percent(cause.share), _interval(cause))))


def _names(cause: Cause | None) -> str:
    """Return the dimensions that stand out, the largest with their shares."""
    if cause is None or not cause.named:
        return ""
    return plain(cause.detail.partition("; zeroed")[0])

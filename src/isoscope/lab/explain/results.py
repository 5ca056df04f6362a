"""How causes look: by site, or by cause where there is one site."""

from collections.abc import Sequence

from isoscope.causes.attribution import ORDER
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


def _tables(causes: Results[Cause]) -> tuple[Table, ...]:
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
    return (Table(", ".join(shared), non_empty(columns), warnings, left_out),)


CAUSES = RecordLayout(
    name="causes",
    tables=_tables,
    to_dict=Cause.to_dict,
    fields=(
        *texts("run", "site", "variant", "cause"),
        *numbers("share", "low", "high", "mean_cosine"),
        *integers("n", "d"),
        Field("detail"),
        Field("named", "json"),
        Field("warnings", "texts", joined=True),
    ),
)


def _whole(share: float) -> int:
    """Return per cent; as a whole number there is no minus zero."""
    return round(100 * share)


def _by_cause(causes: Sequence[Cause]) -> list[Column]:
    ends = [
        "" if c.low is None or c.high is None else f"[{_whole(c.low)}, {_whole(c.high)}]"
        for c in causes
    ]
    return [
        Column("cause", tuple(each.cause for each in causes), words=True),
        Column("share", tuple(f"{_whole(each.share)} %" for each in causes)),
        Column("95 % interval", tuple(ends)),
        Column("what", tuple(plain(each.detail) for each in causes), words=True, fold=24),
    ]


def _by_site(causes: Sequence[Cause]) -> list[Column]:
    sites: dict[str, dict[str, Cause]] = {}
    for each in causes:
        sites.setdefault(each.site, {})[each.cause] = each
    rows = list(sites.values())
    shares = [
        Column(
            name,
            tuple(f"{_whole(row[name].share)} %" if name in row else "" for row in rows),
        )
        for name in ORDER
    ]
    cosines = tuple(f"{next(iter(row.values())).mean_cosine:.3f}" for row in rows)
    named = tuple(
        plain(row["dimensions"].detail) if row["dimensions"].named else "" for row in rows
    )
    return [
        Column("site", tuple(map(plain, sites)), words=True, fold=12),
        Column("mean cosine", cosines),
        *shares,
        Column("dimensions that stand out", named, words=True),
    ]

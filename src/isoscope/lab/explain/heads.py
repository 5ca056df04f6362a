"""Cosines within queries and keys of a head beside the cosine of the site they come from."""

from collections.abc import Iterable, Mapping

from isoscope.dataclass import dataclass
from isoscope.display import (
    Column,
    Field,
    Record,
    RecordLayout,
    Results,
    Table,
    format_value,
    integers,
    numbers,
    plain,
    texts,
)
from isoscope.lab.explain.results import warnings_with_sites
from isoscope.site import CROSS, DECODER, HEAD, Site
from isoscope.types import Reading

NOTES = (
    "mean cosine: of the residual stream that enters the block, from which queries and keys "
    "are made; queries, keys: the mean cosine within those of the head",
    "a head whose queries are more alike than its site adds a direction of its own; one whose "
    "queries are less alike reads what the site's common direction hides",
)


@dataclass(frozen=True)
class HeadCosines(Record):
    """The mean cosine within queries and within keys of a head, and that of their site."""

    run: str
    site: str
    variant: str
    stream: str  # the site whose states queries are made of
    mean_cosine: float | None  # of that site
    low: float | None
    high: float | None
    query_cosine: float
    query_low: float | None
    query_high: float | None
    key_cosine: float
    key_low: float | None
    key_high: float | None
    n: int
    d: int
    warnings: tuple[str, ...] = ()


def stream_of(head: Site) -> str:
    """Return the site that enters the block of a head."""
    stack = DECODER if head.stack == CROSS else head.stack
    if not head.layer:
        return str(Site("embed", stack=stack))
    return str(Site("resid", head.layer - 1, stack=stack))


def head_cosines(
    readings: Iterable[Reading], sites: Iterable[str] | None = None
) -> list[HeadCosines]:
    """Return one record per head of a run, in order; nothing where a run has no heads.

    Of a series they are of its last step.
    """
    by_place: dict[str, dict[str, Reading]] = {}
    found = list(readings)
    last = max((each.step for each in found if each.step is not None), default=None)
    for each in found:
        if each.step == last and not each.group and each.variant == "all":
            by_place.setdefault(each.site, {})[each.measure] = each
    wanted = None if sites is None else set(sites)
    return [
        _record(site, here, by_place)
        for name, here in by_place.items()
        if (site := Site.parse(name)).family == HEAD and (wanted is None or name in wanted)
        if "query-cosine" in here and "key-cosine" in here
    ]


def _record(
    site: Site, here: Mapping[str, Reading], by_place: Mapping[str, Mapping[str, Reading]]
) -> HeadCosines:
    query, key, stream = here["query-cosine"], here["key-cosine"], stream_of(site)
    own = by_place.get(stream, {}).get("mean-cosine")
    return HeadCosines(
        run=query.run,
        site=query.site,
        variant=query.variant,
        stream=stream,
        mean_cosine=None if own is None else own.value,
        low=None if own is None else own.low,
        high=None if own is None else own.high,
        query_cosine=query.value,
        query_low=query.low,
        query_high=query.high,
        key_cosine=key.value,
        key_low=key.low,
        key_high=key.high,
        n=query.n,
        d=query.d,
        warnings=query.warnings,
    )


def _tables(heads: Results[HeadCosines]) -> tuple[Table, ...]:
    """One line per head."""
    columns = (
        Column("head", tuple(plain(each.site) for each in heads), words=True, fold=12),
        Column("site", tuple(plain(each.stream) for each in heads), words=True, fold=12),
        Column("mean cosine", tuple(_cell(e.mean_cosine, e.low, e.high) for e in heads)),
        Column(
            "queries", tuple(_cell(e.query_cosine, e.query_low, e.query_high) for e in heads)
        ),
        Column("keys", tuple(_cell(e.key_cosine, e.key_low, e.key_high) for e in heads)),
    )
    caption = f"run {plain(heads[0].run)}, variant {heads[0].variant}" if heads else ""
    return (Table(caption, columns, warnings_with_sites(heads), tuple(heads.left_out), NOTES),)


def _cell(value: float | None, low: float | None, high: float | None) -> str:
    return "–" if value is None else " ".join(filter(None, format_value(value, low, high)))


HEAD_COSINES = RecordLayout(
    name="heads",
    tables=_tables,
    to_dict=HeadCosines.to_dict,
    fields=(
        *texts("run", "site", "variant", "stream"),
        *numbers("mean_cosine", "low", "high", "query_cosine", "query_low", "query_high"),
        *numbers("key_cosine", "key_low", "key_high"),
        *integers("n", "d"),
        Field("warnings", "texts", joined=True),
    ),
)

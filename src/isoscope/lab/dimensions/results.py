"""Rogue dimensions of sites: their records, and how these look."""

from collections.abc import Sequence

from isoscope.dataclass import dataclass
from isoscope.display import (
    Column,
    Line,
    Record,
    RecordLayout,
    Results,
    Table,
    count,
    format_value,
    integers,
    non_empty,
    numbers,
    plain,
    texts,
)

SHARES = "shares of the mean cosine; r² of cosines without the top dimensions with whole ones"
SMALL = 0.02  # mean cosine below which a share of it may be any number
NEAR_ZERO = "the mean cosine is near zero, so shares of it mean little: {sites}"


@dataclass(frozen=True)
class Dimension(Record):
    """One dimension of a site."""

    index: int
    share: float | None  # of the mean cosine; None where that is zero
    low: float | None  # 95 % interval of the share
    high: float | None
    mean: float
    variance_ratio: float  # its variance over the average one
    kurtosis: float | None  # excess: 0 for a Gaussian; None where it does not vary


@dataclass(frozen=True)
class SiteDimensions(Record):
    """The dimensions of a site that carry the mean cosine, and what cosines are without them.

    `r_squared[k]` is how much of the variance of the cosine of whole vectors the cosine
    without the top k dimensions explains, over all pairs of the sample.
    """

    site: str
    variant: str
    n: int
    d: int
    mean_cosine: float
    top: list[Dimension]  # by share, largest first
    wide: list[int]  # dimensions with five times the average variance or more
    most_kurtotic: list[int]
    r_squared: dict[int, float | None]
    mean_cosine_without: dict[int, float | None]
    sample: int  # number of rows from which kurtosis and r squared are computed

    def indices(self, count: int = 3) -> list[int]:
        """Return the dimensions with the largest shares."""
        return [each.index for each in self.top[:count]]


def _tables(found: Results[SiteDimensions]) -> tuple[Table, ...]:
    """One line per site where there are several, else one per dimension."""
    named = [f"run {plain(str(found.shared['run']))}"]
    if len(found) == 1:
        one = found[0]
        named += [f"site {plain(one.site)}", f"variant {one.variant}"]
        named += [f"mean cosine {one.mean_cosine:.3g}", f"n {count(one.n)}, d {one.d}"]
        columns = _by_dimension(one)
    else:
        named += [f"variant {each}" for each in dict.fromkeys(e.variant for e in found)][:1]
        columns = _by_site(found)
    small = [plain(each.site) for each in found if abs(each.mean_cosine) < SMALL]
    warnings = (NEAR_ZERO.format(sites=", ".join(small)),) if small else ()
    left_out = tuple(plain(text) for text in found.left_out)
    return (Table(f"{', '.join(named)}; {SHARES}", non_empty(columns), warnings, left_out),)


def _lines(found: Results[SiteDimensions]) -> list[Line]:
    """One line per dimension."""
    return [
        {
            **found.shared,
            "site": site.site,
            "variant": site.variant,
            "rank": rank,
            **each.to_dict(),
            "mean_cosine": site.mean_cosine,
            "mean_cosine_without": site.mean_cosine_without.get(rank),
            "r_squared": site.r_squared.get(rank),
            "sample": site.sample,
            "n": site.n,
            "d": site.d,
        }
        for site in found
        for rank, each in enumerate(site.top, start=1)
    ]


DIMENSIONS = RecordLayout(
    name="sites",
    tables=_tables,
    to_dict=SiteDimensions.to_dict,
    fields=(
        *texts("run", "site", "variant"),
        *integers("rank", "index"),
        *numbers("share", "low", "high", "mean", "variance_ratio", "kurtosis"),
        *numbers("mean_cosine", "mean_cosine_without", "r_squared"),
        *integers("sample", "n", "d"),
    ),
    lines=_lines,
)


def _by_dimension(site: SiteDimensions) -> list[Column]:
    pairs = [_share(each) for each in site.top]
    ranks = range(1, len(site.top) + 1)
    return [
        Column("dimension", tuple(str(each.index) for each in site.top)),
        Column("share", tuple(value for value, _ in pairs)),
        Column("95 % interval", tuple(ends for _, ends in pairs)),
        Column("variance", tuple(f"{each.variance_ratio:.1f}x" for each in site.top)),
        Column("kurtosis", tuple(_number(each.kurtosis, 1) for each in site.top)),
        Column("cosine without", tuple(_at(site.mean_cosine_without, k, 3) for k in ranks)),
        Column("r²", tuple(_at(site.r_squared, k, 2) for k in ranks)),
    ]


def _by_site(sites: Sequence[SiteDimensions]) -> list[Column]:
    steps = sorted({k for each in sites for k in each.r_squared})
    return [
        Column("site", tuple(plain(each.site) for each in sites), words=True, fold=12),
        Column("cosine", tuple(f"{each.mean_cosine:.3f}" for each in sites)),
        *(Column(f"top {k}", tuple(_together(each, k) for each in sites)) for k in steps[:2]),
        *(
            Column(f"r² -{k}", tuple(_at(each.r_squared, k, 2) for each in sites))
            for k in steps
        ),
        Column("kurtosis", tuple(_number(each.top[0].kurtosis, 1) for each in sites)),
        Column(
            "dimensions",
            tuple(", ".join(map(str, each.indices(3))) for each in sites),
            words=True,
            fold=12,
        ),
    ]


def _share(each: Dimension) -> tuple[str, str]:
    """Return a share and its interval, in percent."""
    if each.share is None:
        return "–", ""
    low, high = (None if end is None else 100 * end for end in (each.low, each.high))
    value, interval = format_value(100 * each.share, low, high)
    return f"{value} %", interval


def _together(site: SiteDimensions, k: int) -> str:
    shares = [each.share for each in site.top[:k] if each.share is not None]
    return f"{100 * sum(shares):.0f} %".replace("-0 %", "0 %") if shares else "–"


def _at(values: dict[int, float | None], k: int, places: int) -> str:
    return _number(values[k], places) if k in values else ""


def _number(value: float | None, places: int) -> str:
    return "–" if value is None else f"{value + 0.0:.{places}f}"

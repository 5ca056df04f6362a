"""The verb of dimensions: which few of them carry the mean cosine of each site of a run."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoscope.report.escape import plain
from isoscope.report.number import count, shown
from isoscope.report.records import Records
from isoscope.report.table import Column, Table

if TYPE_CHECKING:
    from isoscope.lab.outlier_dimensions import Dimension, SiteDimensions

TOLD = "shares of the mean cosine; r² of cosines without the top dimensions with whole ones"
SMALL = 0.02  # mean cosine below which a share of it may be any number
NEAR_ZERO = "the mean cosine is near zero, so shares of it mean little: {sites}"
UNTOLD = "expected sums of directions, moments and a sample, got a run without them"


class Dimensions(Records["SiteDimensions"]):
    """The dimensions that carry the mean cosine, a record a site."""

    @property
    def tables(self) -> tuple[Table, ...]:
        """A line a site where there are several, else a line a dimension."""
        named = [f"run {plain(str(self.shared['run']))}"]
        if len(self) == 1:
            one = self[0]
            named += [f"site {plain(one.site)}", f"variant {one.variant}"]
            named += [f"mean cosine {one.mean_cosine:.3g}", f"n {count(one.n)}, d {one.d}"]
            columns = _by_dimension(one)
        else:
            named += [f"variant {each}" for each in dict.fromkeys(e.variant for e in self)][:1]
            columns = _by_site(self)
        caption = f"{', '.join(named)}; {TOLD}"
        return (Table(caption, tuple(columns), self._warnings(), self._left_out()),)

    def lines(self) -> list[dict[str, Any]]:
        """A line a dimension."""
        return [
            self.shared | _line(site, rank, each)
            for site in self
            for rank, each in enumerate(site.top, start=1)
        ]

    def _warnings(self) -> tuple[str, ...]:
        small = [plain(each.site) for each in self if abs(each.mean_cosine) < SMALL]
        return (NEAR_ZERO.format(sites=", ".join(small)),) if small else ()

    def _left_out(self) -> tuple[str, ...]:
        return tuple(plain(text) for text in self.left_out)


def dimensions(
    run: str | os.PathLike[str],
    *,
    sites: Sequence[str] | None = None,
    variant: str = "all",
    progress: Callable[[int, int], None] | None = None,
) -> Dimensions:
    """Say which dimensions carry the mean cosine of each site, and what is left without them.

    With their kurtosis, and how much of the cosines of whole vectors (r squared, over the
    pairs of the sample) is left when the top 1, 3 and 5 are taken out.
    """
    from isoscope.lab import rogue_dimensions
    from isoscope.store import load

    whole = load(run)
    found = rogue_dimensions(whole, sites, variant=variant, progress=progress)
    asked = dict.fromkeys(whole.sites if sites is None else sites)
    missing = [site for site in asked if site not in {each.site for each in found}]
    return Dimensions(
        found,
        shared={"run": Path(run).name},
        left_out=[f"{site}: {UNTOLD}" for site in missing],
    )


def _line(site: "SiteDimensions", rank: int, each: "Dimension") -> dict[str, Any]:
    return {
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


def _by_dimension(site: "SiteDimensions") -> list[Column]:
    pairs = [_share(each) for each in site.top]
    ranks = range(1, len(site.top) + 1)
    columns = [
        Column("dimension", tuple(str(each.index) for each in site.top)),
        Column("share", tuple(value for value, _ in pairs)),
        Column("95 % interval", tuple(ends for _, ends in pairs)),
        Column("variance", tuple(f"{each.variance_ratio:.1f}x" for each in site.top)),
        Column("kurtosis", tuple(_number(each.kurtosis, 1) for each in site.top)),
        Column("cosine without", tuple(_at(site.mean_cosine_without, k, 3) for k in ranks)),
        Column("r²", tuple(_at(site.r_squared, k, 2) for k in ranks)),
    ]
    return [column for column in columns if any(column.cells)]


def _by_site(sites: Sequence["SiteDimensions"]) -> list[Column]:
    steps = sorted({k for each in sites for k in each.r_squared})
    return [
        Column("site", tuple(plain(each.site) for each in sites), words=True),
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
        ),
    ]


def _share(each: "Dimension") -> tuple[str, str]:
    """Return a share and its interval, in percent."""
    if each.share is None:
        return "–", ""
    ends = (None, None) if each.low is None or each.high is None else (each.low, each.high)
    low, high = (None if end is None else 100 * end for end in ends)
    value, interval = shown(100 * each.share, low, high)
    return f"{value} %", interval


def _together(site: "SiteDimensions", k: int) -> str:
    shares = [each.share for each in site.top[:k] if each.share is not None]
    return f"{100 * sum(shares):.0f} %".replace("-0 %", "0 %") if shares else "–"


def _at(values: dict[int, float | None], k: int, places: int) -> str:
    return _number(values[k], places) if k in values else ""


def _number(value: float | None, places: int) -> str:
    return "–" if value is None else f"{value + 0.0:.{places}f}"

"""Why a site is anisotropic: one record per cause, from the accumulators of its rows."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar, cast

from isoscope.accumulate import (
    Accumulator,
    BandCells,
    Directions,
    Kind,
    Reservoir,
    Sink,
    Sinks,
    merged,
)
from isoscope.accumulate.row_bands import band_name
from isoscope.accumulate.survey import Place
from isoscope.causes.attribution import ORDER, Attribution, attribute
from isoscope.causes.cloud import BandedDirections, CloudSums
from isoscope.causes.dependence import Band
from isoscope.causes.dimensions import RogueDimensions
from isoscope.causes.pairs import Share
from isoscope.dataclass import dataclass
from isoscope.errors import StoreError
from isoscope.types import VARIANTS, scale_of

NO_BANDS = (
    "frequency and position are not explained where rows are not tokens, or were surveyed by "
    "an older version"
)
NO_COUNTS = "frequency is not explained: the tokens of this run were not counted"
NO_MEAN = "sinks and dimensions are not explained: the mean cosine is not above zero"
NO_REST = (
    "frequency and position are not explained: rows that are not sinks have no direction in "
    "common"
)
Summaries = Mapping[Kind, Accumulator[object]]
A = TypeVar("A", bound=Accumulator[object])
Named = tuple[dict[str, Any], ...]
SHOWN = 3  # of many named things, in a sentence


@dataclass(frozen=True, slots=True)
class Cause:
    """How much of the likeness of rows is owed to one cause, and what it is.

    On the scale `removal` shares are of the mean cosine, on the scale `dependence` of the mean
    cosine of rows of the same frequency and position; the two do not add up.
    """

    run: str
    site: str
    variant: str
    cause: str
    scale: str
    share: float  # by dependence: the Shapley value
    low: float | None  # 95 % interval; None where there are too few documents for one
    high: float | None
    whole: float  # the mean cosine that the share is of
    mean_cosine: float  # of all rows, from pairs of different document groups
    n: int
    d: int
    detail: str  # a sentence
    first: float | None = None  # before the other cause
    first_low: float | None = None
    first_high: float | None = None
    last: float | None = None  # after the other cause
    last_low: float | None = None
    last_high: float | None = None
    alone: float | None = None  # were it the only cause known
    alone_low: float | None = None
    alone_high: float | None = None
    falls_to: float | None = None  # mean cosine with the named dimensions zeroed
    falls_to_low: float | None = None
    falls_to_high: float | None = None
    named: tuple[dict[str, Any], ...] = ()  # dimensions, sinks or bands, one by one
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, with the keys of `--json`."""
        return asdict(self) | {"named": list(self.named), "warnings": list(self.warnings)}


def site_causes(
    held: Mapping[Place, Summaries], site: str, variant: str, run: str
) -> list[Cause]:
    """Return the causes of one site, in a fixed order."""
    classes = {each: held[site, each] for each in VARIANTS[variant] if (site, each) in held}
    ordinary = [here for name, here in classes.items() if "sink" not in name]
    sinks = [here for name, here in classes.items() if "sink" in name]
    if not classes:  # vectors, matrices and pooled texts have no classes of rows
        ordinary = [held[site, "all"]] if (site, "all") in held else []
    pointing = _merge(ordinary, Directions)
    if pointing is None:
        raise StoreError(
            f"expected sums of directions at {site}, got a run without them",
            hint="measure again, with mean-cosine among the measures",
            slug="explain-without-directions",
        )
    seen = BandedDirections(pointing, _merge(ordinary, BandCells))
    sample = _merge(ordinary, Reservoir)
    found = attribute(
        CloudSums.of(seen, _merge(sinks, Directions)),
        None if sample is None or not sample.count else sample.finalize(),
    )
    table = _merge(sinks, Sinks)
    missing = () if seen.has_frequencies else (NO_COUNTS if seen.has_bands else NO_BANDS,)
    return causes(
        found,
        table.finalize().sinks if table is not None else (),
        run=run,
        site=site,
        variant=variant,
        warnings=missing,
    )


def _merge(classes: Sequence[Summaries], kind: type[A]) -> A | None:
    """Return what the classes have seen together; None where one has not kept it."""
    if not classes or any(kind not in here for here in classes):
        return None
    return merged(cast(A, here[kind]) for here in classes)


def causes(
    found: Attribution,
    sinks: Iterable[Sink] = (),
    *,
    run: str,
    site: str,
    variant: str,
    warnings: tuple[str, ...] = (),
) -> list[Cause]:
    """Return the causes of a site, in a fixed order."""
    said = [*warnings]
    if found.sinks is None:
        said.append(NO_MEAN)
    if found.dependences is None and NO_BANDS not in warnings:
        said.append(NO_REST)
    parts = _by_removal(found, tuple(sinks)) | _by_dependence(found)
    return [
        Cause(
            run=run,
            site=site,
            variant=variant,
            cause=name,
            scale=scale_of(name),
            mean_cosine=found.mean_cosine.value,
            n=found.rows,
            d=found.width,
            warnings=tuple(said),
            **parts[name],
        )
        for name in ORDER
        if name in parts
    ]


def _by_removal(found: Attribution, sinks: tuple[Sink, ...]) -> dict[str, dict[str, Any]]:
    parts: dict[str, dict[str, Any]] = {}
    if found.sinks is not None:
        detail, named = _about_sinks(found, sinks)
        parts["sinks"] = _share(found.sinks) | {
            "whole": found.mean_cosine.value,
            "detail": detail,
            "named": named,
        }
    if found.dimensions is not None:
        detail, named = _about_dimensions(found, found.dimensions)
        parts["dimensions"] = _share(found.dimensions.share) | {
            "whole": found.without_sinks.value,
            "detail": detail,
            "named": named,
        }
        if found.zeroed is not None:
            parts["dimensions"] |= _share(found.zeroed[1], "falls_to")
    return parts


def _by_dependence(found: Attribution) -> dict[str, dict[str, Any]]:
    if found.dependences is None:
        return {}
    parts: dict[str, dict[str, Any]] = {}
    whole = {"whole": found.dependences.whole.value}
    for name, each in found.dependences.causes.items():
        detail, named = _about_bands(each.bands)
        parts[name] = (
            _share(each.shapley)
            | _share(each.first, "first")
            | _share(each.last, "last")
            | _share(each.alone, "alone")
            | whole
            | {"detail": detail, "named": named}
        )
    known = " and ".join(found.dependences.causes)
    detail = f"does not depend on {known}: all rows share it"
    parts["mean"] = _share(found.dependences.mean) | whole | {"detail": detail}
    return parts


def _share(share: Share, name: str = "") -> dict[str, float | None]:
    """Return a share and its interval as fields of a cause."""
    names = (name, f"{name}_low", f"{name}_high") if name else ("share", "low", "high")
    return dict(zip(names, (share.value, share.low, share.high), strict=True))


def _percent(share: float) -> str:
    """Return whole per cent, never minus zero."""
    return f"{round(100 * share)}%"


def _about_sinks(found: Attribution, sinks: tuple[Sink, ...]) -> tuple[str, Named]:
    if not found.sink_rows:
        return "there are none", ()
    count = f"{found.sink_rows} of {found.rows} rows"
    named = tuple(map(asdict, sinks))
    places = Counter((each.word, each.position) for each in sinks)
    shown = [
        f"{word!r} at position {position}" if word else f"position {position}"
        for (word, position), _ in places.most_common(SHOWN)
    ]
    return ": ".join(filter(None, (count, ", ".join(shown)))), named


def _about_dimensions(found: Attribution, rogue: RogueDimensions) -> tuple[str, Named]:
    if not rogue.named:
        return "none stands out", ()
    shown = [f"{each} ({_percent(share)})" for each, share in list(rogue.named.items())[:SHOWN]]
    parts = [", ".join(shown)]
    if len(rogue.named) > SHOWN:
        parts[0] += f" and {len(rogue.named) - SHOWN} more"
    if rogue.stood_out > len(rogue.named):
        parts.append(f"limited to {len(rogue.named)} of {rogue.stood_out} that stand out")
    if found.zeroed is not None:
        before, after = found.zeroed
        parts.append(
            f"zeroed, the mean cosine of sampled rows falls from {before.value:.3f} to "
            f"{after.value:.3f}"
        )
    named = tuple({"dimension": k, "share": share} for k, share in rogue.named.items())
    return "; ".join(parts), named


def _about_bands(bands: Sequence[Band]) -> tuple[str, Named]:
    if len(bands) < 2:
        return "all rows are in one band", ()
    named = tuple(
        {
            "band": band_name(each.number),
            "rows": each.rows,
            "mean_cosine": each.cosine,
            "contribution": each.contribution.value,
            "low": each.contribution.low,
            "high": each.contribution.high,
        }
        for each in bands
    )
    # the band that has most of the mean cosine beyond, or short of, its part in the rows
    most = max(bands, key=lambda each: abs(each.contribution.value - each.rows))
    sentence = (
        f"{band_name(most.number)}: {_percent(most.rows)} of the rows, "
        f"{_percent(most.contribution.value)} of the mean cosine"
    )
    return sentence, named

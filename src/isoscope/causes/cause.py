"""Why a site is anisotropic: one record per cause, from the accumulators of its rows."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar, cast

from isoscope.accumulate import (
    Accumulator,
    Bands,
    Crossing,
    Directions,
    Kind,
    Sink,
    Sinks,
    merged,
)
from isoscope.accumulate.survey import Place
from isoscope.causes.attribution import ORDER, Attribution, attribute
from isoscope.causes.cloud import BandedDirections, CloudSums
from isoscope.errors import StoreError
from isoscope.types import VARIANTS

NO_BANDS = "frequency and position are not explained: this run has no bands of tokens"
NO_COUNTS = "frequency is not explained: the tokens of this run were not counted"
Summaries = Mapping[Kind, Accumulator[object]]
A = TypeVar("A", bound=Accumulator[object])
Detail = tuple[str, tuple[dict[str, Any], ...]]
SHOWN = 3  # of many named things, in a sentence


@dataclass(frozen=True, slots=True)
class Cause:
    """How much of the mean cosine of a site is owed to one cause, and what it is."""

    run: str
    site: str
    variant: str
    cause: str
    share: float
    low: float | None  # 95 % interval; None where there are too few documents for one
    high: float | None
    mean_cosine: float
    n: int
    d: int
    detail: str  # a sentence
    named: tuple[dict[str, Any], ...] = ()  # dimensions, sinks or bands, one by one
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, with the keys of `--json`."""
        return asdict(self) | {"named": list(self.named), "warnings": list(self.warnings)}


def site_causes(
    held: Mapping[Place, Summaries], site: str, variant: str, run: str
) -> list[Cause]:
    """Return the causes of one site, in the order of attribution."""
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
    seen = BandedDirections(pointing, _merge(ordinary, Bands), _merge(ordinary, Crossing))
    found = attribute(CloudSums.of(seen, _merge(sinks, Directions)))
    table = _merge(sinks, Sinks)
    return causes(
        found,
        table.finalize().sinks if table is not None else (),
        run=run,
        site=site,
        variant=variant,
        warnings=() if seen.has_frequencies else (NO_COUNTS if seen.has_bands else NO_BANDS,),
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
    """Return the causes of a site, in the order of attribution."""
    details = {
        "sinks": _about_sinks(found, tuple(sinks)),
        "dimensions": _about_dimensions(found),
        "frequency": _about_bands(found.frequency_bands, ("rarest", "most frequent tokens")),
        "position": _about_bands(found.position_bands, ("first", "last positions")),
        "mean": ("what all rows share", ()),
    }
    return [
        Cause(
            run=run,
            site=site,
            variant=variant,
            cause=name,
            share=found.shares[name].value,
            low=found.shares[name].low,
            high=found.shares[name].high,
            mean_cosine=found.mean_cosine.value,
            n=found.rows,
            d=found.width,
            detail=details[name][0],
            named=details[name][1],
            warnings=warnings,
        )
        for name in ORDER
        if name in found.shares
    ]


def _about_sinks(found: Attribution, sinks: tuple[Sink, ...]) -> Detail:
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


def _about_dimensions(found: Attribution) -> Detail:
    if not found.dimensions:
        return "none stands out", ()
    shown = [f"{each} ({share:.0%})" for each, share in found.dimensions.items()]
    named = tuple({"dimension": k, "share": share} for k, share in found.dimensions.items())
    return ", ".join(shown), named


def _about_bands(bands: tuple[tuple[float, float], ...], ends: tuple[str, str]) -> Detail:
    if len(bands) < 2:
        return "all rows are in one band", ()
    (_, first), (_, last) = bands[0], bands[-1]
    sentence = f"mean cosine {first:.2f} among the {ends[0]}, {last:.2f} among the {ends[1]}"
    return sentence, tuple({"rows": rows, "mean_cosine": alike} for rows, alike in bands)

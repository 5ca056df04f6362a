"""A cause: one record of why a site is anisotropic."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from isoscope.accumulate.sinks import Sink
from isoscope.causes.attribution import ORDER, Attribution

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
        values = asdict(self)
        return values | {"named": list(self.named), "warnings": list(self.warnings)}


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


Detail = tuple[str, tuple[dict[str, Any], ...]]


def _about_sinks(found: Attribution, sinks: tuple[Sink, ...]) -> Detail:
    if not found.sink_rows:
        return "there are none", ()
    count = f"{found.sink_rows} of {found.rows} rows"
    named = tuple({key: value for key, value in asdict(each).items()} for each in sinks)
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

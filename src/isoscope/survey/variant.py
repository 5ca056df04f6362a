"""Variants: the same site read with and without special tokens and sinks.

Rows fall into four disjoint classes, each with accumulators of its own; a variant is the
merge of some of them. Nothing is ever subtracted: the difference of two large sums has no
digits left where one token carries nearly all of the variance.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from isoscope.accumulate import Accumulator, merged

Kind = type[Accumulator[Any]]
Place = tuple[str, str]  # site, and class of rows or variant

ORDINARY, SPECIAL, SINK, SPECIAL_SINK = "ordinary", "special", "sink", "special-sink"
CLASSES = (ORDINARY, SPECIAL, SINK, SPECIAL_SINK)
VARIANTS = {
    "all": CLASSES,
    "no-special": (ORDINARY, SINK),
    "no-sink": (ORDINARY, SPECIAL),
}


def variants(
    held: Mapping[Place, Mapping[Kind, Accumulator[Any]]],
) -> Iterator[tuple[Place, dict[Kind, Accumulator[Any]]]]:
    """Yield every site in every variant it has rows for, with accumulators to read.

    Vectors on disk have no classes: what is held under a variant's own name is yielded as
    it is. So is what a second pass has collected, since each variant has a mean of its own.
    """
    sites = dict.fromkeys(site for site, _ in held)
    for site in sites:
        for variant, classes in VARIANTS.items():
            parts = [held[site, each] for each in classes if (site, each) in held]
            own = held.get((site, variant), {})
            if parts or own:
                yield (site, variant), _merged(parts) | dict(own)


def _merged(parts: list[Mapping[Kind, Accumulator[Any]]]) -> dict[Kind, Accumulator[Any]]:
    if len(parts) < 2:
        return dict(*parts)
    return {kind: merged(part[kind] for part in parts) for kind in parts[0]}

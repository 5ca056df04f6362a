"""Variants: the same site read with and without special tokens and sinks.

Rows fall into four disjoint classes, each with accumulators of its own; a variant is the
merge of some of them. Nothing is ever subtracted: the difference of two large sums has no
digits left where one token carries nearly all of the variance.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from isoscope.accumulate import Accumulator, Overlap, merged
from isoscope.types import CLASSES, VARIANTS

Kind = type[Accumulator[Any]]
Place = tuple[str, str]  # site, and class of rows or variant

ORDINARY, SPECIAL, SINK, SPECIAL_SINK = CLASSES


def variants(
    held: Mapping[Place, Mapping[Kind, Accumulator[Any]]],
) -> Iterator[tuple[str, tuple[str, ...], dict[Kind, Accumulator[Any]]]]:
    """Yield every site in every variant it has rows for, with accumulators to read.

    Variants that have the same rows come together: where there are no sinks, `no-sink` is
    `all`. Vectors on disk have no classes: what is held under a variant's own name is
    yielded as it is. So is what a second pass has collected, since each variant has a mean
    of its own.
    """
    for site in dict.fromkeys(site for site, _ in held):
        alike: dict[tuple[str, ...], list[str]] = {}
        for variant, classes in VARIANTS.items():
            there = tuple(each for each in classes if (site, each) in held)
            if there or held.get((site, variant), {}).keys() - {Overlap}:
                alike.setdefault(there or (variant,), []).append(variant)
        for classes, names in alike.items():
            parts = [held[site, each] for each in classes if each in CLASSES]
            own = dict(held.get((site, names[0]), {}))
            whole = _merged(parts)
            overlap = own.pop(Overlap, None)
            if isinstance(overlap, Overlap) and len(parts) > 1:
                overlap.correct(whole)
            yield site, tuple(names), whole | own


def _merged(parts: list[Mapping[Kind, Accumulator[Any]]]) -> dict[Kind, Accumulator[Any]]:
    if len(parts) < 2:
        return dict(*parts)
    return {kind: merged(part[kind] for part in parts) for kind in parts[0]}

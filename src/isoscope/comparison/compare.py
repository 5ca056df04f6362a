"""Compare two runs: readings side by side, and which changes are larger than noise."""

from collections.abc import Iterable, Sequence
from typing import Any

from isoscope.comparison.changes import changes_of
from isoscope.comparison.effect import NEGLIGIBLE, check_limit, is_negligible, scale_of
from isoscope.comparison.pairing import (
    MATCHES,
    Pairing,
    differences,
    layers_of,
    match_sites,
    pairing,
    unknown_depths,
)
from isoscope.comparison.side import Key, Side, gap_between, names_of, two_runs
from isoscope.display import Results, usual_measures
from isoscope.errors import ConfigError
from isoscope.measures import MEASURES
from isoscope.measures.difference import LEVEL, holm, is_same
from isoscope.measures.view import FarNeighbours, Neighbours
from isoscope.registry import check_names
from isoscope.study.measure_choice import companions, measure_names
from isoscope.types import DEBIASED_TWINS, VARIANTS, Change, Reading


def compare(
    first: Any,
    second: Any,
    *,
    measures: Sequence[str] | None = None,
    sites: Sequence[str] | None = None,
    variant: str = "all",
    match: str = "name",
    all: bool = False,
    negligible: float = NEGLIGIBLE,
) -> Results[Change]:
    """Compare the readings of two runs, each difference with a 95 % interval.

    Either may be a run folder, a loaded run, or vectors: a file or an array, which is measured
    first. Vectors are paired row by row, row n with row n.
    Where both runs read the same documents the differences are paired by document group,
    which makes their intervals much narrower; otherwise the runs are independent samples. A
    reading has changed if p < 0.05 after Holm's correction over all rows returned. Such a
    change is negligible if its whole interval is below the share `negligible` of the scale of
    the measure: the larger of the two values, or 1 for mean cosines and mean-share.
    If there are several sites only the usual measures are compared, unless `measures` names
    others or `all` is true.
    """
    check_limit(negligible)
    check_names("variant", [variant], VARIANTS)
    check_names("match", [match], MATCHES)
    names = None if measures is None else measure_names(measures)
    with two_runs(first, second, names) as runs:
        sides = Side.of(runs[0], variant, names), Side.of(runs[1], variant, names)
        check_names("site", sites or (), dict.fromkeys([*sides[0].sites, *sides[1].sites]))
        layers = layers_of(runs[0]), layers_of(runs[1])
        pairs = [
            pair
            for pair in match_sites(sides[0].sites, sides[1].sites, match, layers)
            if sites is None or pair[0] in sites
        ]
        keys = _shared_keys(sides, pairs)
        if names is None and not all:
            keys = _usual(sides, keys)
        if not keys:
            ours, theirs = (_list(side.sites) or "nothing" for side in sides)
            raise ConfigError(
                f"expected a reading that both runs have, got none: a has {ours}; "
                f"b has {theirs}",
                hint="choose sites, measures and a variant that both have, or --match depth",
                slug="nothing-to-compare",
            )
        left_out = _left_out(sides, pairs, sites, names)
        for side, own in zip(sides, zip(*keys, strict=True), strict=True):
            side.readings = {key: side.readings[key] for key in own}
        how = pairing(*runs)
        return changes_of(
            changes(sides, keys, how, negligible),
            runs=names_of(first, second),
            negligible=negligible,
            method=how.why,
            depths=unknown_depths(*runs) if match == "depth" else "",
            differs=differences(*runs),
            left_out=left_out,
        )


def _shared_keys(
    sides: tuple[Side, Side], pairs: Iterable[tuple[str, str]]
) -> list[tuple[Key, Key]]:
    """Return the keys of readings that both runs have."""
    ours: dict[str, list[Key]] = {}
    for key in sides[0].readings:
        ours.setdefault(key[0], []).append(key)
    return [
        (key, (other, *key[1:]))
        for site, other in pairs
        for key in ours[site]
        if (other, *key[1:]) in sides[1].readings
    ]


def _usual(sides: tuple[Side, Side], keys: list[tuple[Key, Key]]) -> list[tuple[Key, Key]]:
    """Return the keys of the usual measures if there are several sites, as in layer tables."""
    if len({ours[0] for ours, _ in keys}) < 2:
        return keys
    names = usual_measures([sides[0].readings[ours] for ours, _ in keys])
    return [pair for pair in keys if pair[0][2] in names]


def changes(
    sides: tuple[Side, Side],
    keys: Iterable[tuple[Key, Key]],
    how: Pairing,
    negligible: float,
) -> list[Change]:
    """Return the changes, p-values corrected for the number of rows."""
    pairs = [(sides[0].readings[ours], sides[1].readings[theirs]) for ours, theirs in keys]
    gaps = [gap_between(sides[1], b, sides[0], a, paired=how.at(a.site)) for a, b in pairs]
    corrected = holm([gap.p for gap, _ in gaps])
    scales = [scale_of(a.measure, a.value, b.value) for a, b in pairs]
    return [
        Change(
            site=a.site,
            other_site=b.site,
            variant=a.variant,
            step=a.step,
            measure=a.measure,
            a=a.value,
            a_low=a.low,
            a_high=a.high,
            b=b.value,
            b_low=b.low,
            b_high=b.high,
            difference=gap.value,
            low=gap.low,
            high=gap.high,
            paired=paired,
            chance=chance,
            effect=gap.value / scale if scale else 0.0,
            scale=scale,
            verdict=_verdict(a, b, chance, is_negligible(gap, scale, negligible)),
            warnings=_warnings(sides, a, b),
        )
        for (a, b), (gap, paired), chance, scale in zip(
            pairs, gaps, corrected, scales, strict=True
        )
    ]


def _verdict(a: Reading, b: Reading, chance: float | None, negligible: bool) -> str:
    if is_same(a.value, b.value):
        return "same"
    if chance is None:
        return "no interval"
    if chance >= LEVEL:
        return "within noise"
    return "negligible" if negligible else "changed"


def _warnings(sides: tuple[Side, Side], a: Reading, b: Reading) -> tuple[str, ...]:
    """Return reasons other than the models why two readings may differ."""
    biased = sides[0].is_biased(a) or sides[1].is_biased(b)
    bias = _bias(sides, a, b) if biased else ""
    widths = f"different widths: {a.d} and {b.d}" if a.d != b.d else ""
    return tuple(filter(None, (bias, _sample(a, b), widths)))


def _sample(a: Reading, b: Reading) -> str:
    """Return that nearest rows are nearer in a larger sample, where it matters."""
    record = MEASURES.get(a.measure)
    if record is None or record.reads not in (Neighbours, FarNeighbours) or a.n == b.n:
        return ""
    return (
        f"distances to the nearest of {a.n} sampled rows in a and {b.n} in b: compare runs of "
        "equally many documents"
    )


def _bias(sides: tuple[Side, Side], a: Reading, b: Reading) -> str:
    """Return what bias may do to a difference, and what to compare instead."""
    documents = sides[0].documents(a), sides[1].documents(b)
    better = "measure more documents"
    if documents[0] != documents[1]:
        why = f"biased by the number of documents, {documents[0]} in a and {documents[1]} in b"
        better = "compare runs of equally many documents"
    elif a.n != b.n:
        why = f"biased by the number of rows, {a.n} in a and {b.n} in b"
        better = "compare runs of equally many rows"
    else:
        why = "biased by few rows or documents, perhaps not alike in a and b"
    twins = sides[0].twin(a), sides[1].twin(b)
    if all(each is not None and not _is_doubtful(each) for each in twins):
        better = f"compare {DEBIASED_TWINS[a.measure]}"
    return f"{why}: {better}"


def _is_doubtful(reading: Reading) -> bool:
    """Whether a debiased reading is biased itself, or of too few documents."""
    return reading.biased or any("unreliable" in text for text in reading.warnings)


def _left_out(
    sides: tuple[Side, Side],
    pairs: Sequence[tuple[str, str]],
    sites: Sequence[str] | None,
    names: Sequence[str] | None,
) -> list[str]:
    """Return what only one of the runs has, and what neither can compute."""
    found: list[str] = []
    for label, place in (("a", 0), ("b", 1)):
        matched = {pair[place] for pair in pairs}
        alone = [
            site
            for site in sides[place].sites
            if site not in matched and (sites is None or site in sites)
        ]
        if alone:
            found.append(f"only in {label}, or without a match: {_list(alone)}")
    for label, ours, theirs in (("a", *sides), ("b", *sides[::-1])):
        alone = [name for name in ours.measures if name not in theirs.measures]
        if alone:
            found.append(f"only in {label}: {_list(alone)}")
    have = {*sides[0].measures, *sides[1].measures}
    missing = [n for n in names or () if n not in have and not companions(n) & have]
    return found + [f"{name}: cannot be determined in either run" for name in missing]


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return ", ".join(names[:12]) + more

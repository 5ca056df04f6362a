"""Reading a site: summaries into numbers with intervals and warnings, also band by band."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import inf

import numpy as np

from isoscope.accumulate import (
    ACCUMULATORS,
    Accumulator,
    ArrayBlock,
    BandCells,
    BandsSummary,
    CentredDirections,
    Copies,
    Directions,
    EarlyQueries,
    Moments,
    Partitions,
    Reservoir,
    Sentences,
    Sinks,
    Tally,
    Vocabulary,
    accumulator_of,
)
from isoscope.accumulate.survey import SECOND_PASS, Kind, Place, Survey, variants
from isoscope.blas import one_blas_thread
from isoscope.errors import TooFewRowsError, UndefinedError
from isoscope.hashing import GROUPS
from isoscope.measures import MEASURES, Measure, level
from isoscope.measures.base import NOT_OF_ROWS
from isoscope.measures.extrapolate import Estimate, warn_of_doubt
from isoscope.measures.interval import (
    Spread,
    enough_groups,
    interval_and_spread,
    interval_from,
    quantile,
    spread,
)
from isoscope.measures.mean_cosine import mean_cosine, mean_cosines_without_each
from isoscope.measures.population import estimate
from isoscope.measures.view import GroupView, Spectrum, Summaries, Units, View
from isoscope.measures.view.heads import BEFORE_ROTATION
from isoscope.site import HEAD, HEADS, MATRICES, Site
from isoscope.study.gradients import read_grouped
from isoscope.study.threads import THREADS, map_in_threads
from isoscope.study.warn import about_bias, about_rows
from isoscope.types import Reading

Spreads = dict[tuple[str, str, str], Spread]  # by site, variant and measure
EARLY = "before-rotation"  # the group of readings of vectors that are not rotated yet
_OWN_MEASURES = {HEAD: "heads", "grad": "gradients", "gradw": "gradients"}  # by family
_ROUNDING = 1e-12
_SINGLE = 1e-6  # by which float32 may be off
_AIDS: tuple[Kind, ...] = (Tally, Copies)  # what warnings are made of
_CAUSES: tuple[Kind, ...] = (Directions, BandCells, Sinks)  # what explanations are


# What only tokens of a stream need. Other families of sites do without, unless a measure that
# was named needs it: there are hundreds of heads, and rows of a matrix are in no document.
_OF_TOKENS: frozenset[Kind] = frozenset((Vocabulary, Sentences, BandCells, Sinks))
NOT_COLLECTED: dict[str, frozenset[Kind]] = dict.fromkeys(
    (*HEADS, "grad", "gradw", *MATRICES), _OF_TOKENS
)


def kinds_for(
    names: Iterable[str],
    *,
    causes: bool = False,
    site: Site | str | None = None,
    named: Iterable[str] = (),
    intervals: bool = True,
) -> tuple[Kind, ...]:
    """Return the accumulators that these measures need, each once, in a fixed order.

    With causes, also what explanations are made of: rows by frequency and position, and the
    sinks. With a site, or the name of its family, only what that family collects, and what
    the measures in `named` need, which the user chose by name. Without intervals, only
    what the values of measures are computed from.

    At d = 64, 64,000 tokens of 512 documents and the default measures, a head takes
    1,057,902 bytes per class of rows instead of 1,993,730; with mean-cosine alone, 36,418.
    """
    needed: set[Kind] = {*(_AIDS if intervals else ()), *(_CAUSES if causes else ())}
    needed |= _needs(names, intervals=intervals)
    needed = (needed - _not_collected(site)) | _needs(named, intervals=intervals)
    if needed & set(SECOND_PASS):
        needed |= {Moments, Reservoir}  # what it starts from, and where it cannot be had
    return tuple(kind for kind in ACCUMULATORS if kind in needed)


def _needs(names: Iterable[str], *, intervals: bool = True) -> set[Kind]:
    return {
        kind
        for view in (MEASURES[name].reads for name in names)
        for kind in view.needs
        if intervals or kind not in view.for_intervals
    }


def _not_collected(site: Site | str | None) -> frozenset[Kind]:
    family = "" if site is None else Site.parse(str(site)).family
    return NOT_COLLECTED.get(family, frozenset())


def measurable(here: Mapping[Kind, Accumulator[object]]) -> tuple[str, ...]:
    """Return the measures that these accumulators can answer."""
    return tuple(m.name for m in MEASURES.values() if all(k in here for k in m.reads.needs))


def second_passes(
    here: Mapping[Kind, Accumulator[object]], kinds: Iterable[Kind]
) -> dict[Kind, Accumulator[object]]:
    """Return fresh accumulators of a second pass, built from what the first has seen."""
    moments = accumulator_of(here, Moments).finalize()
    fresh: dict[Kind, Accumulator[object]] = {}
    for kind in kinds:
        if kind is CentredDirections:
            fresh[kind] = CentredDirections(moments.width, moments.mean)
        if kind is Partitions:
            second = moments.whole.scatter / moments.count
            second += moments.mean[:, None] * moments.mean
            with one_blas_thread():
                axes = np.linalg.eigh(second)[1][:, ::-1]
            fresh[kind] = Partitions(moments.width, axes)
    return fresh


def read_survey(
    survey: Survey,
    names: Iterable[str] | None = None,
    *,
    run: str = "",
    threads: int = THREADS,
    spreads: Spreads | None = None,
    **options: object,
) -> tuple[list[Reading], dict[str, str]]:
    """Compute each named measure at each site, in each variant it has.

    Returns the readings, and for each measure that cannot be computed the reason why. The
    measures of a site are computed on several threads, which changes no bit of them. What
    intervals are made of goes into `spreads`, where they are given.
    """
    readings: list[Reading] = []
    left_out: dict[str, str] = {}
    with one_blas_thread():  # eigenvalues change their last bits with the threads
        for site, alike, here in variants(survey.held):
            chosen = measurable(here) if names is None else tuple(names)
            parts: dict[str, Spread] | None = None if spreads is None else {}
            found, missing = read_place(
                (site, alike[0]),
                here,
                chosen,
                run=run,
                options=options,
                threads=threads,
                spreads=parts,
            )
            for variant in alike:
                if spreads is not None and parts is not None:
                    spreads |= {(site, variant, name): each for name, each in parts.items()}
                readings += [replace(each, variant=variant) for each in found]
            left_out.update(missing)
    return readings, left_out


def read_values(summaries: Summaries, names: Sequence[str]) -> dict[str, float]:
    """Return the value alone of each measure that is defined here, without its interval."""
    values: dict[str, float] = {}
    for name in names:
        with suppress(TooFewRowsError, UndefinedError):
            view, compute, _ = _computation(MEASURES[name], summaries, {})
            values[name] = compute(view)
    return values


def survey_spreads(
    survey: Survey, names: Sequence[str], variant: str = "all", **options: object
) -> dict[tuple[str, str], Spread]:
    """Return what each document group adds to the error of a reading, by site and measure.

    It is what intervals are made of; two runs of the same documents are compared by it.
    """
    found: dict[tuple[str, str], Spread] = {}
    with one_blas_thread():
        for site, alike, here in variants(survey.held):
            if variant not in alike:
                continue
            summaries = _summarise(here, names)
            map_in_threads(partial(_make_view, summaries), _views(names))
            for name in names:
                with suppress(TooFewRowsError, UndefinedError):
                    each = _spread(MEASURES[name], summaries, options)
                    if each is not None:
                        found[site, name] = each
            summaries.forget()
    return found


def read_place(
    place: Place,
    here: Mapping[Kind, Accumulator[object]],
    names: Sequence[str],
    *,
    run: str,
    options: Mapping[str, object],
    threads: int = THREADS,
    spreads: dict[str, Spread] | None = None,
) -> tuple[list[Reading], dict[str, str]]:
    """Return the readings of a site, and for each measure that is missing the reason why."""
    site = Site.parse(place[0])
    own = _OWN_MEASURES.get(site.family)
    names = [name for name in names if own == _whose(MEASURES[name])]
    summaries = _summarise(here, names)
    readings: list[Reading] = []
    left_out: dict[str, str] = {}
    without = frozenset[Kind]() if site.is_matrix else _not_collected(site) - here.keys()

    def read_record(record: Measure) -> list[Reading]:
        whole = record.reads is MEASURES[record.name].reads  # and not that of a group
        return _readings(record, summaries, place, run, options, spreads if whole else None)

    def read(name: str) -> list[Reading] | str:
        if lacking := sorted(k.__name__.lower() for k in _needs([name]) & without):
            return f"not collected at {site.family} sites unless named: {', '.join(lacking)}"
        try:
            return read_grouped(MEASURES[name], summaries, read_record, options)
        except (TooFewRowsError, UndefinedError) as problem:
            return problem.problem

    def work(job: str | type[View]) -> list[Reading] | str:
        return read(job) if isinstance(job, str) else _make_view(summaries, job)

    # Views first: they are most of the work, and several measures wait for each.
    views = _views(names) if threads > 1 else []
    found = map_in_threads(work, [*views, *names], threads)
    for name, each in zip(names, found[len(views) :], strict=True):
        if isinstance(each, str):
            left_out[name] = each
        else:
            readings += each
    biased = about_bias(readings)
    warned = [
        replace(r, warnings=(*r.warnings, biased[r.measure])) if r.measure in biased else r
        for r in readings
    ]
    if EarlyQueries in here:
        warned += _before_rotation(summaries, place, names, run, options)
    if BandCells in here and "mean-cosine" in names:
        bands = accumulator_of(here, BandCells).finalize().bands()
        warned += by_band(place, bands, run=run, d=summaries.of(Tally).width)
    summaries.forget()
    return warned, left_out


def _whose(record: Measure) -> str | None:
    """Return which sites alone a measure is of: heads or gradients; None: of any rows."""
    return record.offered if record.offered in NOT_OF_ROWS else None


def _before_rotation(
    summaries: Summaries,
    place: Place,
    names: Sequence[str],
    run: str,
    options: Mapping[str, object],
) -> list[Reading]:
    """Return what is read off mean queries and keys before rotary positions turn them."""
    found: list[Reading] = []
    for record in (MEASURES[name] for name in names):
        early = (
            BEFORE_ROTATION.get(record.reads) if issubclass(record.reads, GroupView) else None
        )
        if early is not None:
            with suppress(TooFewRowsError, UndefinedError):
                found += _readings(replace(record, reads=early), summaries, place, run, options)
    return [replace(each, group=EARLY) for each in found]


def _spread(
    record: Measure, summaries: Summaries, options: Mapping[str, object]
) -> Spread | None:
    """Return what each document group adds to the error of a reading, where it has one."""
    view, compute, published = _computation(record, summaries, options)
    value = compute(view)
    if record.spread is not None:
        return record.spread(view, value, published)
    if found := estimate(record, view, compute, published=published):
        return replace(found.spread, centre=found.value)
    assert isinstance(view, GroupView)
    return spread(view, compute, value)


def _summarise(here: Mapping[Kind, Accumulator[object]], names: Sequence[str]) -> Summaries:
    """Return the summaries of a site, also of second passes that were not made."""
    summaries = finalize_all(here)
    reads = (MEASURES[name].reads for name in names)
    summaries.spectra = frozenset(r.about_zero for r in reads if issubclass(r, Spectrum))
    if any(MEASURES[name].second_pass for name in names):
        with suppress(TooFewRowsError):
            _from_sample(here, summaries)
    return summaries


def finalize_all(
    here: Mapping[Kind, Accumulator[object]], *, intervals: bool = True
) -> Summaries:
    """Return the summaries of a site; without intervals, for `read_values` alone."""
    summaries = Summaries(intervals=intervals)
    for kind, accumulator in here.items():
        try:
            summaries[kind] = accumulator.finalize()
        except TooFewRowsError as problem:
            summaries[kind] = problem
    return summaries


def _computation(
    record: Measure, summaries: Summaries, options: Mapping[str, object]
) -> tuple[View, Callable[[View], float], bool]:
    """Return what a measure looks at, its function, and if that is the published one."""
    published = bool(options.get("as_published")) and record.published is not None
    compute = record.published if published and record.published else record.compute
    compute = partial(compute, **{k: options[k] for k in record.options if k in options})
    return summaries.view(record.reads), compute, published


def _from_sample(here: Mapping[Kind, Accumulator[object]], summaries: Summaries) -> None:
    """Make up for second passes that were not made, from the rows of the reservoir."""
    missing = [kind for kind in SECOND_PASS if kind not in here]
    if not missing or Moments not in here or Reservoir not in here:
        return
    sample = summaries.of(Reservoir)
    block = ArrayBlock(
        sample.rows,
        sample.documents,
        np.arange(sample.count, dtype=np.uint64),
        independent=sample.independent,
    ).reorder(np.argsort(sample.documents, kind="stable"))
    for kind, accumulator in second_passes(here, missing).items():
        accumulator.update(block)
        summaries[kind] = accumulator.finalize()
        summaries.sampled.add(kind)


def _views(names: Iterable[str]) -> list[type[View]]:
    """Return the views that readings are made of and that take time, each once."""
    return list(dict.fromkeys(view for name in names for view in MEASURES[name].views))


def _make_view(summaries: Summaries, view: type[View]) -> list[Reading]:
    """Make a view; there is nothing to read yet."""
    with suppress(TooFewRowsError, UndefinedError):  # raised when a measure uses it
        summaries.view(view)
    return []


def _readings(
    record: Measure,
    summaries: Summaries,
    place: Place,
    run: str,
    options: Mapping[str, object],
    spreads: dict[str, Spread] | None = None,
) -> list[Reading]:
    """Return the reading of a measure and of what belongs beside it."""
    view, compute, published = _computation(record, summaries, options)
    value, d = compute(view), summaries.of(Tally).width
    inside = _within(value, record, view.count, d)
    # float32 rows that are equal have cosines of 1.0000001; RankMe has 1e-7 in its definition
    if abs(inside - value) <= _SINGLE and not any(map(callable, record.bounds)):
        value = inside
    around, own, found = _around(record, view, compute, value, published=published)
    if spreads is not None and around is not None:
        if own is None or record.spread is not None:
            own = _spread(record, summaries, options)
        if own is not None:
            spreads[record.name] = own
    warnings = about_rows(summaries, record.reads, debiased=found is not None)
    if found is not None:
        independent = summaries.of(Tally).independent
        warnings += warn_of_doubt(found, low=found.value > value, independent=independent)
    if record.warn is not None:
        warnings += record.warn(view, value, _error(around))
    if published:
        warnings.append("as published, not as isoscope defines it")
    low, high = (
        None if end is None else _within(end, record, view.count, d)
        for end in around or (None, None)
    )
    low, high = _around_value(low, high, value, always=found is not None)
    if around is None and not any(w.startswith("no interval") for w in warnings):
        warnings.append("no interval: it is not defined without some of the groups")
    first = Reading(
        run=run,
        site=place[0],
        variant=place[1],
        group="",
        step=None,
        measure=record.name,
        value=value,
        low=low,
        high=high,
        n=view.count,
        d=d,
        warnings=tuple(warnings),
    )
    if record.companions is None:
        return [first]
    beside = [
        replace(
            first, measure=f"{record.name}-{c.suffix}", value=c.value, low=c.low, high=c.high
        )
        for c in record.companions(view, published)
    ]
    return [first, *beside]


def _around_value(
    low: float | None, high: float | None, value: float, *, always: bool
) -> tuple[float | None, float | None]:
    """Return an interval that reaches the value, where only rounding keeps it from that."""
    if low is None or high is None:
        return low, high
    tiny = _ROUNDING * max(abs(value), 1.0)  # identical rows are off by this much
    if always or low - tiny <= value <= high + tiny:
        return min(low, value), max(high, value)
    return low, high


def _around(
    record: Measure,
    view: View,
    compute: Callable[..., float],
    value: float,
    *,
    published: bool,
) -> tuple[tuple[float, float] | None, Spread | None, Estimate | None]:
    """Return the interval of a reading, its spread, and what is estimated of the population.

    A measure with an interval of its own has neither of the other two.
    """
    if record.interval is not None:
        return record.interval(view, value, published), None, None
    if found := estimate(record, view, compute, published=published):
        ends = found.ends if record.corrected else found.ends_about(value)
        return ends, replace(found.spread, centre=found.value), found
    assert isinstance(view, GroupView)
    shape = {"logarithmic": record.logarithmic, "skewed": record.skewed}
    return *interval_and_spread(view, compute, value, **shape), None


def _error(around: tuple[float, float] | None) -> float | None:
    """Return about the standard error that an interval was made of."""
    return None if around is None else (around[1] - around[0]) / 2 / quantile(GROUPS - 1)


def _within(end: float, record: Measure, n: int, d: int) -> float:
    """Return a value or an end of an interval, moved into what the measure can be."""
    least, most = (level(bound, n, d) for bound in record.bounds)
    return min(max(end, -inf if least is None else least), inf if most is None else most)


def by_band(place: Place, bands: BandsSummary, *, run: str, d: int) -> list[Reading]:
    """Return the mean cosine of every band that has two rows; the band is the group."""
    readings: list[Reading] = []
    for band, name in enumerate(bands.names):
        units = _band_units(bands, band)
        if units.count < 2:
            continue
        value = mean_cosine(units)
        low, high = _band_interval(units, value) or (None, None)
        readings.append(
            Reading(
                run=run,
                site=place[0],
                variant=place[1],
                group=name,
                step=None,
                measure="mean-cosine",
                value=value,
                low=None if low is None else max(low, -1.0),
                high=None if high is None else min(high, 1.0),
                n=units.count,
                d=d,
                warnings=() if low is not None else ("no interval: too few documents",),
            )
        )
    return readings


def _band_interval(units: Units, value: float) -> tuple[float, float] | None:
    """Return the interval of the mean cosine of a band."""
    if not enough_groups(units):
        return None
    with np.errstate(divide="ignore", invalid="ignore"):  # one row is left: no interval
        without = mean_cosines_without_each(units)
    return interval_from(units, value, without if np.isfinite(without).all() else None)


def _band_units(bands: BandsSummary, band: int) -> Units:
    """Return the unit vectors of a band, as those of all rows are looked at."""
    there = bands.nonzero[:, band] > 0
    nonzero, units = bands.nonzero[there, band], bands.units[there, band]
    nothing = np.zeros(len(nonzero))  # pairs within a document are not excluded here
    return Units(
        keys=np.flatnonzero(there).astype(np.uint64),
        sizes=nonzero,
        documents=bands.documents,
        units=units,
        energy=np.zeros(len(units.T)),
        own=nothing,
        pairs=nothing,
    )

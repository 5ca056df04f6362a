"""A survey: the accumulators of every site, which merge as they do and give readings."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from isoscope.accumulate import (
    ACCUMULATORS,
    Accumulator,
    Block,
    CentredDirections,
    Copies,
    Moments,
    Partitions,
    Reservoir,
    ReservoirSummary,
    Tally,
)
from isoscope.errors import MergeError, TooFewRowsError, UndefinedError
from isoscope.measure import MEASURES, Measure
from isoscope.measure.interval import interval
from isoscope.measure.view import Summaries
from isoscope.measure.view.spectrum import decomposed
from isoscope.survey.warn import about_bias, about_rows
from isoscope.types import Array, Reading

Kind = type[Accumulator[Any]]
Place = tuple[str, str]  # site, variant
_BY_NAME: dict[str, Kind] = {kind.__name__: kind for kind in ACCUMULATORS}
SECOND_PASS: tuple[Kind, ...] = (CentredDirections, Partitions)
_AIDS: tuple[Kind, ...] = (Tally, Copies)  # what warnings are made of


def kinds_for(names: Iterable[str]) -> tuple[Kind, ...]:
    """Return the accumulators that these measures need, each once, in a fixed order."""
    needed: set[Kind] = set(_AIDS)
    for name in names:
        needed.update(MEASURES[name].reads.needs)
    if needed & set(SECOND_PASS):
        needed |= {Moments, Reservoir}  # what it starts from, and where it cannot be had
    return tuple(kind for kind in ACCUMULATORS if kind in needed)


@dataclass
class Survey:
    """Accumulators by site, variant and kind."""

    held: dict[Place, dict[Kind, Accumulator[Any]]] = field(
        default_factory=dict[Place, dict[Kind, Accumulator[Any]]]
    )
    left_out: dict[str, str] = field(default_factory=dict[str, str])

    def update(self, place: Place, kinds: Sequence[Kind], block: Block) -> None:
        """Show a block of a site to its accumulators, made on first sight."""
        here = self.held.setdefault(place, {})
        for kind in kinds:
            if kind not in here:
                here[kind] = kind(block.width)
            here[kind].update(block)

    def merge(self, other: "Survey") -> None:
        """Take in everything another survey has seen."""
        for place, theirs in other.held.items():
            if place not in self.held:
                self.held[place] = {
                    kind: kind.from_state(part.state(), width=part.width)
                    for kind, part in theirs.items()
                }
                continue
            ours = self.held[place]
            _drop_second_passes(ours, theirs)
            if ours.keys() - set(SECOND_PASS) != theirs.keys() - set(SECOND_PASS):
                raise MergeError(
                    f"cannot merge surveys that kept different summaries at {place[0]}",
                    hint="measure both with the same measures",
                    slug="merge-kind",
                )
            for kind, part in ours.items():
                part.merge(theirs[kind])

    def second_kinds(self, place: Place, kinds: Iterable[Kind]) -> dict[Kind, Accumulator[Any]]:
        """Return fresh accumulators of a second pass, built from what the first has seen."""
        moments = self.held[place][Moments].finalize()
        fresh: dict[Kind, Accumulator[Any]] = {}
        for kind in kinds:
            if kind is CentredDirections:
                fresh[kind] = CentredDirections(moments.width, moments.mean)
            if kind is Partitions:
                n = moments.count
                second = moments.whole.scatter / n
                second += moments.mean[:, None] * moments.mean
                with threadpool_limits(1):
                    axes = decomposed(second, moments.width, least=-1.0)[1]
                fresh[kind] = Partitions(moments.width, axes)
        return fresh

    def _from_sample(self, place: Place, summaries: Summaries) -> None:
        """Make up for second passes that were not made, from the rows of the reservoir."""
        here = self.held[place]
        missing = [kind for kind in SECOND_PASS if kind not in here]
        if not missing or Moments not in here or Reservoir not in here:
            return
        sample: ReservoirSummary = summaries.of(Reservoir)
        block = Block(sample.rows, sample.documents, np.arange(sample.count, dtype=np.uint64))
        block.independent = sample.independent
        for kind, accumulator in self.second_kinds(place, missing).items():
            order = np.argsort(sample.documents, kind="stable")
            accumulator.update(block.reordered(order))
            summaries[kind] = accumulator.finalize()
            summaries.sampled.add(kind)

    def measurable(self, place: Place) -> tuple[str, ...]:
        """Return the measures that what is held at a place can answer."""
        here = self.held[place]
        return tuple(m.name for m in MEASURES.values() if all(k in here for k in m.reads.needs))

    def read(
        self, names: Iterable[str] | None = None, *, run: str = "", **options: Any
    ) -> list[Reading]:
        """Compute each named measure at each site; what cannot be is noted in `left_out`."""
        readings: list[Reading] = []
        self.left_out = {}
        with threadpool_limits(1):  # eigenvalues change their last bits with the threads
            for place in self.held:
                chosen = self.measurable(place) if names is None else tuple(names)
                readings += self._read_place(place, chosen, run, options)
        return readings

    def _read_place(
        self, place: Place, names: Iterable[str], run: str, options: Mapping[str, Any]
    ) -> list[Reading]:
        summaries = Summaries()
        for kind, accumulator in self.held[place].items():
            try:
                summaries[kind] = accumulator.finalize()
            except TooFewRowsError as problem:
                summaries[kind] = problem
        if any(MEASURES[name].second_pass for name in names):
            with suppress(TooFewRowsError):
                self._from_sample(place, summaries)
        _make_views(summaries, names)
        readings: list[Reading] = []
        for name in names:
            record = MEASURES[name]
            try:
                readings += _readings(record, summaries, place, run, options)
            except (TooFewRowsError, UndefinedError) as problem:
                self.left_out[name] = problem.problem
        biased = about_bias(readings)
        return [
            replace(r, warnings=(*r.warnings, biased[r.measure])) if r.measure in biased else r
            for r in readings
        ]

    def to_state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what rebuilds the survey: a description and arrays by name."""
        places: list[dict[str, Any]] = []
        arrays: dict[str, Array] = {}
        for number, ((site, variant), here) in enumerate(self.held.items()):
            widths = {kind.__name__: a.width for kind, a in here.items()}
            places.append({"site": site, "variant": variant, "kinds": widths})
            for kind, accumulator in here.items():
                for name, array in accumulator.state().items():
                    arrays[f"{number}.{kind.__name__}.{name}"] = array
        return {"places": places}, arrays

    @classmethod
    def from_state(cls, meta: Mapping[str, Any], arrays: Mapping[str, Array]) -> "Survey":
        """Rebuild a survey from what `to_state` returned."""
        survey = cls()
        for number, place in enumerate(meta["places"]):
            here = survey.held.setdefault((place["site"], place["variant"]), {})
            for kind_name, width in place["kinds"].items():
                start = f"{number}.{kind_name}."
                state = {
                    name.removeprefix(start): array
                    for name, array in arrays.items()
                    if name.startswith(start)
                }
                kind = _BY_NAME[kind_name]
                here[kind] = kind.from_state(state, width=width)
        return survey


def _drop_second_passes(
    ours: dict[Kind, Accumulator[Any]], theirs: Mapping[Kind, Accumulator[Any]]
) -> None:
    """Forget second passes that started from different first ones: they do not add up."""
    for kind in SECOND_PASS:
        if kind in ours and (
            kind not in theirs or theirs[kind].signature() != ours[kind].signature()
        ):
            del ours[kind]


def _make_views(summaries: Summaries, names: Iterable[str]) -> None:
    """Make the views that measures will ask for, two at a time: they are most of the work."""

    def make(view: type[Any]) -> None:
        with suppress(TooFewRowsError, UndefinedError):  # told when a measure asks for it
            summaries.view(view)

    wanted = dict.fromkeys(MEASURES[name].reads for name in names)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(make, wanted))


def _readings(
    record: Measure,
    summaries: Summaries,
    place: Place,
    run: str,
    options: Mapping[str, Any],
) -> list[Reading]:
    """Return the reading of a measure and of what belongs beside it."""
    view: Any = summaries.view(record.reads)
    published = bool(options.get("as_published")) and record.published is not None
    compute = record.published if published and record.published else record.compute
    compute = partial(compute, **{k: options[k] for k in record.options if k in options})
    value = compute(view)
    if record.interval is not None:
        around = record.interval(view, value)
    else:
        around = interval(view, compute, value, logarithmic=record.logarithmic)
    warnings = about_rows(summaries, record.reads)
    if published:
        warnings.append("as published, not as isoscope defines it")
    low, high = around or (None, None)
    if around is None and not any(w.startswith("no interval") for w in warnings):
        warnings.append("no interval: it is not defined without some of the groups")
    site, variant = place
    d = summaries[Tally].width
    first = Reading(
        run,
        site,
        variant,
        "",
        None,
        record.name,
        value,
        low,
        high,
        view.count,
        d,
        tuple(warnings),
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

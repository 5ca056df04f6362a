"""One side of a comparison: a run or vectors, its readings, and the spreads behind them."""

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any

from isoscope.accumulate import Tally, accumulator_of
from isoscope.accumulate.survey import variants
from isoscope.dataclass import dataclass
from isoscope.errors import TooFewRowsError
from isoscope.measures import MEASURES
from isoscope.measures.difference import (
    Difference,
    difference_by_group,
    independent_difference,
    population_difference,
)
from isoscope.measures.interval import Spread
from isoscope.store import Run, load, open_run
from isoscope.store.atomic import SpareFolder
from isoscope.store.atomic import reading as reading_of
from isoscope.store.schema import SERIES
from isoscope.store.series import SeriesParts
from isoscope.study.keywords import call
from isoscope.study.measure_choice import options_of
from isoscope.study.reading import survey_spreads
from isoscope.study.rows import MeasureSpec
from isoscope.study.saved_runs import read
from isoscope.study.warn import about_bias
from isoscope.types import DEBIASED_TWINS, Reading

Key = tuple[str, int | None, str]  # site, step, measure
RunOrPath = str | os.PathLike[str] | Run
SAME = "rows"  # the name of both sources of vectors


@dataclass
class Side:
    """A run, its readings of one variant, and the spreads behind them, computed on demand."""

    run: Run
    variant: str
    readings: dict[Key, Reading]
    _spreads: dict[str, dict[str, Spread]] = field(default_factory=dict[str, dict[str, Spread]])
    _documents: dict[str, int] = field(default_factory=dict[str, int])  # by site
    _twins: dict[str, dict[Key, Reading]] = field(default_factory=dict[str, dict[Key, Reading]])

    @classmethod
    def of(
        cls,
        run: Run,
        variant: str,
        measures: Sequence[str] | None = None,
        step: int | None = None,
    ) -> "Side":
        """Return a run's readings of a variant, without those of bands.

        With a step of a series, those of that step alone, found under no step.
        """
        try:
            found = run.readings if measures is None else read(run, measures=measures)
        except TooFewRowsError:  # the run can compute none of these measures
            found = []
        kept = {
            (each.site, each.step if step is None else None, each.measure): each
            for each in found
            if each.variant == variant and not each.group and step in (None, each.step)
        }
        return cls(run, variant, kept)

    @cached_property
    def _series(self) -> dict[tuple[int, str, str, str], Spread]:
        """The spreads of the steps of a series, by step, site, variant and measure."""
        if self.run.series is None:
            return {}
        with reading_of(self.run.path / SERIES):
            steps = SeriesParts.decode(self.run.series).steps
        return {
            (step.step, each.site, each.variant, each.measure): Spread(
                each.parts.array,
                step.keys[each.keys].array,
                each.lost,
                centre=each.centre,
                correction=each.correction,
            )
            for step in steps
            for each in step.parts
        }

    @property
    def sites(self) -> list[str]:
        """The sites it has readings of."""
        return list(dict.fromkeys(site for site, _, _ in self.readings))

    @property
    def measures(self) -> list[str]:
        """The measures it has readings of."""
        return list(dict.fromkeys(measure for _, _, measure in self.readings))

    def find(self, reading: Reading) -> Reading | None:
        """Return what this run has of the measure and site of another run's reading."""
        keys = ((reading.site, step, reading.measure) for step in (reading.step, None))
        return next(filter(None, map(self.readings.get, keys)), None)

    def documents(self, reading: Reading) -> int:
        """Return the number of documents behind a reading; of all it read where not kept."""
        if reading.site not in self._documents:
            here = self.run.survey_of(reading.site).held
            counts = [
                accumulator_of(found, Tally).documents
                for _, alike, found in variants(here)
                if self.variant in alike and Tally in found
            ]
            listed = sum(source.documents or 0 for source in self.run.origin.sources)
            self._documents[reading.site] = counts[0] if counts else listed or reading.n
        return self._documents[reading.site]

    def twin(self, reading: Reading) -> Reading | None:
        """Return the debiased twin of a reading, also where it was not asked for."""
        name = DEBIASED_TWINS.get(reading.measure, "")
        if found := self.readings.get((reading.site, reading.step, name)):
            return found
        if name and name not in self._twins:
            self._twins[name] = Side.of(self.run, self.variant, (name,)).readings
        return self._twins[name].get((reading.site, reading.step, name)) if name else None

    def is_biased(self, reading: Reading) -> bool:
        """Whether a reading is known to be biased, by its warnings or by its debiased twin."""
        if reading.biased:
            return True
        twin = self.twin(reading)
        return twin is not None and reading.measure in about_bias((reading, twin))

    def spread(self, reading: Reading) -> Spread | None:
        """Return what each document group adds to the error of a reading, None if unknown."""
        if reading.step is not None:
            return self._series.get((reading.step, reading.site, self.variant, reading.measure))
        if reading.site not in self._spreads:
            here = [
                each.measure for each in self.readings.values() if each.site == reading.site
            ]
            found = survey_spreads(
                self.run.survey_of(reading.site),
                [name for name in here if name in MEASURES],
                self.variant,
                **options_of(self.run.settings),
            )
            self._spreads[reading.site] = {name: spread for (_, name), spread in found.items()}
        return self._spreads[reading.site].get(reading.measure)


@contextmanager
def two_runs(
    first: Any, second: Any, measures: Sequence[str] | None = None
) -> Generator[tuple[Run, Run]]:
    """Yield two runs; vectors are measured into a temporary folder first."""
    with SpareFolder() as folder:
        sides = _run_of(first), _run_of(second)
        yield (
            sides[0] or _measure(first, Path(folder) / "a", measures, sides[1]),
            sides[1] or _measure(second, Path(folder) / "b", measures, sides[0]),
        )


def names_of(first: Any, second: Any) -> tuple[str, str]:
    """Return the names of two sides, or their paths where the names are equal."""
    paths = _path(first) or Path("vectors a"), _path(second) or Path("vectors b")
    names = paths[0].resolve().name, paths[1].resolve().name
    return names if names[0] != names[1] else (str(paths[0]), str(paths[1]))


def _run_of(source: Any) -> Run | None:
    """Return a run; None for vectors, a file or an array."""
    path = _path(source)
    there = isinstance(source, Run) or (path is not None and not path.is_file())
    return open_run(source) if there else None


def _measure(
    source: Any, folder: Path, measures: Sequence[str] | None, other: Run | None
) -> Run:
    """Measure vectors into a folder: row n is paired with row n, or as the other run is."""
    by_order = other is None or other.settings.known_by != "content"
    options = {"measures": measures, "name": SAME, "by_order": by_order, "output": folder}
    call(MeasureSpec, (source,), options)
    return load(folder)


def _path(source: Any) -> Path | None:
    """Return where something is on disk; None for vectors in memory."""
    if isinstance(source, str | os.PathLike):
        return Path(source)
    return source.path if isinstance(source, Run) else None


def gap_between(
    ours: Side, first: Reading, theirs: Side, second: Reading, *, paired: bool, times: float = 1
) -> tuple[Difference, bool]:
    """Return first - times x second, and whether it could be paired by document group."""
    if first.low is not None and second.low is not None:
        one, other = ours.spread(first), theirs.spread(second)
        if one is not None and other is not None:
            values, both = (first.value, second.value), (one, other)
            if one.centre is not None:
                gap = population_difference(*values, both, paired=paired, times=times)
                return gap, paired
            if paired:
                return difference_by_group(*values, both, times=times), True
    ends = (first.low, first.high), (second.low, second.high)
    return independent_difference(first.value, second.value, ends, times=times), False

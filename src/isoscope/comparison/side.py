"""One of two runs that are compared: its readings, and what their errors are made of."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isoscope.errors import TooFewRowsError
from isoscope.study.reading import survey_spreads
from isoscope.study.reads import options_of
from isoscope.study.runs import read
from isoscope.types import Reading

if TYPE_CHECKING:
    from isoscope.measures.difference import Difference
    from isoscope.measures.interval import Spread
    from isoscope.store import Run

Key = tuple[str, int | None, str]  # site, step, measure
Folder = str | os.PathLike[str]


@dataclass
class Side:
    """A run, its readings of one variant, and the spreads behind them once they are asked."""

    run: "Run"
    variant: str
    readings: dict[Key, Reading]
    _spreads: dict[str, dict[str, "Spread"]] = field(
        default_factory=dict[str, dict[str, "Spread"]]
    )

    @classmethod
    def of(cls, run: "Run", variant: str, measures: Sequence[str] | None = None) -> "Side":
        """Return a run's readings of a variant; bands of tokens and positions are left out."""
        try:
            found = run.readings if measures is None else read(run, measures=measures)
        except TooFewRowsError:  # nothing of what was asked for is in this run
            found = []
        kept = {
            (each.site, each.step, each.measure): each
            for each in found
            if each.variant == variant and not each.group
        }
        return cls(run, variant, kept)

    @property
    def sites(self) -> list[str]:
        """The sites it has readings of."""
        return list(dict.fromkeys(site for site, _, _ in self.readings))

    @property
    def measures(self) -> list[str]:
        """The measures it has readings of."""
        return list(dict.fromkeys(measure for _, _, measure in self.readings))

    def spread(self, reading: Reading) -> "Spread | None":
        """Return what each document group adds to the error of a reading, where it is known."""
        if reading.step is not None:
            return None
        if reading.site not in self._spreads:
            here = [each for each in self.readings.values() if each.site == reading.site]
            self._spreads[reading.site] = self._told(reading.site, here)
        return self._spreads[reading.site].get(reading.measure)

    def _told(self, site: str, readings: Iterable[Reading]) -> "dict[str, Spread]":
        from isoscope.measures import MEASURES

        names = [each.measure for each in readings if each.measure in MEASURES]
        options = options_of(self.run.settings)
        found = survey_spreads(self.run.survey_of(site), names, self.variant, **options)
        return {name: spread for (_, name), spread in found.items()}

    def keep(self, keys: Iterable[Key]) -> None:
        """Forget all readings but these."""
        self.readings = {key: self.readings[key] for key in keys}


def opened(given: "Folder | Run") -> "Run":
    """Return a run, read from its folder unless it is one already."""
    from isoscope.store import Run, load

    return given if isinstance(given, Run) else load(given)


def gap_between(
    ours: Side, first: Reading, theirs: Side, second: Reading, *, paired: bool, times: float = 1
) -> "tuple[Difference, bool]":
    """Return first - times x second, and whether it could be paired by document group."""
    from isoscope.measures.difference import difference_by_group, independent_difference

    if paired and first.low is not None and second.low is not None:
        spreads = ours.spread(first), theirs.spread(second)
        if spreads[0] is not None and spreads[1] is not None:
            both = (spreads[0], spreads[1])
            return difference_by_group(first.value, second.value, both, times=times), True
    ends = (first.low, first.high), (second.low, second.high)
    return independent_difference(first.value, second.value, ends, times=times), False

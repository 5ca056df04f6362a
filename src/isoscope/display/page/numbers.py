"""The table of every number: columns for the page, and what is left out when there are many."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from isoscope.display.page.exhibit import Exhibit
from isoscope.display.page.measures import FIRST
from isoscope.display.page.pack import column
from isoscope.types import VARIANTS, Reading

MOST = 20_000  # readings a page
_FIRST = [name for subject in FIRST for name in (subject.debiased, subject.plain) if name]


@dataclass(frozen=True)
class Numbers:
    """The readings that are on the page, and how many there are in all."""

    kept: list[Reading]
    total: int

    @property
    def left_out(self) -> str:
        """What is not on the page, and the command that prints it; empty if all is."""
        if self.total == len(self.kept):
            return ""
        return (
            f"{self.total - len(self.kept):,} of {self.total:,} readings are left out of this "
            "page, the least usual measures and variants first. All of them: "
            "isoscope read RUN --csv"
        )

    def packed(self, levels: Iterable[float | None]) -> dict[str, Any]:
        """Return the readings as columns."""
        names = ("run", "site", "variant", "group", "step", "measure", "value", "low", "high")
        sizes = ("n", "d", "warnings")
        found = {n: column(getattr(r, n) for r in self.kept) for n in (*names, *sizes)}
        return found | {"isotropic": column(levels)}


def limited(exhibits: Sequence[Exhibit], most: int = MOST) -> tuple[list[Exhibit], Numbers]:
    """Return exhibits with no more readings than a page takes, the most usual ones kept."""
    from dataclasses import replace

    every = [(place, each) for place, e in enumerate(exhibits) for each in e.readings]
    if len(every) <= most:
        return list(exhibits), Numbers([each for _, each in every], len(every))
    ranked = sorted(range(len(every)), key=lambda i: _rank(every[i][1]))
    kept = [every[i] for i in sorted(ranked[:most])]
    fewer = [
        replace(exhibit, readings=[each for place, each in kept if place == number])
        for number, exhibit in enumerate(exhibits)
    ]
    return fewer, Numbers([each for _, each in kept], len(every))


def _rank(each: Reading) -> tuple[bool, int, int]:
    variant = list(VARIANTS).index(each.variant) if each.variant in VARIANTS else 9
    usual = _FIRST.index(each.measure) if each.measure in _FIRST else len(_FIRST)
    return (bool(each.group), variant, usual)

"""The engine that does units one after the other, in this process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar, overload

from isoscope.engine.heap import trim
from isoscope.store.frontier import Frontier
from isoscope.store.unit import Unit, Units
from isoscope.survey import Survey

Work = Callable[[Unit], Survey]
Progress = Callable[[int, int], None]  # units done, units in all


class Keeper(Protocol):
    """A folder of finished units."""

    def missing(self) -> list[int]:
        """Return the units that are not done yet, in order."""
        ...

    def add(self, unit: int, result: Any, /) -> None:
        """Keep the result of a unit."""
        ...


K = TypeVar("K", bound=Keeper)


@overload
def here(
    units: Units, work: Work, folder: Path, *, progress: Progress | None = None
) -> Frontier: ...


@overload
def here(
    units: Units,
    work: Callable[[Unit], Any],
    folder: Path,
    *,
    progress: Progress | None = None,
    keep: Callable[[Path, Units], K],
) -> K: ...


def here(
    units: Units,
    work: Callable[[Unit], Any],
    folder: Path,
    *,
    progress: Progress | None = None,
    keep: Callable[[Path, Units], Any] = Frontier,
) -> Any:
    """Do the units that are not done yet; the keeper that comes back holds all of them.

    Each is written to the folder as it is finished; surveys are merged with their
    neighbours there. The next call with the same units goes on from there. Other engines
    have this face too.
    """
    keeper = keep(folder, units)
    left = keeper.missing()
    for done, number in enumerate(left, len(units) - len(left)):
        if progress is not None:
            progress(done, len(units))
        keeper.add(number, work(units.units[number]))
        trim()
    if progress is not None:
        progress(len(units), len(units))
    return keeper

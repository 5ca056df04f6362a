"""The engine that does units one after the other, in this process."""

from collections.abc import Callable
from pathlib import Path

from isoscope.engine.heap import trim
from isoscope.store.frontier import Frontier
from isoscope.store.unit import Unit, Units
from isoscope.survey import Survey

Work = Callable[[Unit], Survey]
Progress = Callable[[int, int], None]  # units done, units in all


def here(
    units: Units, work: Work, folder: Path, *, progress: Progress | None = None
) -> Frontier:
    """Do the units that are not done yet; the frontier that comes back holds all of them.

    Each is written to the folder as it is finished, and merged with its neighbours there;
    the next call with the same units goes on from there. Other engines have this face too.
    """
    frontier = Frontier(folder, units)
    left = frontier.missing()
    for done, number in enumerate(left, len(units) - len(left)):
        if progress is not None:
            progress(done, len(units))
        frontier.add(number, work(units.units[number]))
        trim()
    if progress is not None:
        progress(len(units), len(units))
    return frontier

"""The engine that does units one after the other, in this process."""

from collections.abc import Callable
from pathlib import Path
from time import monotonic

from isoscope.store.frontier import Frontier, settled
from isoscope.store.unit import Unit, Units
from isoscope.survey import Survey

EVERY = 120.0  # seconds between writings: one state of a large model is a gigabyte

Work = Callable[[Unit], Survey]
Progress = Callable[[int, int], None]  # units done, units in all


def here(
    units: Units,
    work: Work,
    folder: Path,
    *,
    every: float = EVERY,
    progress: Progress | None = None,
) -> Survey:
    """Do the units that are not done yet, and return all of them added up.

    What is finished is written to the folder every so often; the next call with the same
    units goes on from there. Other engines have this same face.
    """
    frontier = Frontier(folder, units)
    tree = frontier.open()
    written = monotonic()
    for number in list(tree.missing()):
        tree.add(number, work(units.units[number]))
        if monotonic() - written >= every:
            frontier.write(tree)
            written = monotonic()
        if progress is not None:
            progress(len(units) - sum(1 for _ in tree.missing()), len(units))
    frontier.write(tree)
    total = tree.total(settled)  # type: ignore[arg-type]
    return Survey() if total is None else total  # type: ignore[return-value]

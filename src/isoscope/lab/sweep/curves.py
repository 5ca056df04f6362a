"""A sweep as a page draws it: every cell, and what each weight changes."""

from collections.abc import Iterable, Iterator
from math import isfinite
from typing import TYPE_CHECKING

from isoscope.errors import StoreError
from isoscope.lab.sweep.results import sweeps_of
from isoscope.types import SweepCell, SweepGrid, SweepWeight

if TYPE_CHECKING:
    from isoscope.lab.sweep.summary import Line
    from isoscope.store.run import Run


def swept(run: "Run") -> SweepGrid:
    """Return the weights of a sweep and its cells; raise where a run has not both."""
    from isoscope.lab.sweep.summary import was_learnt

    try:
        lines = sweeps_of(run.readings, run.origin)
        task, settings = run.origin.sweep()
        return SweepGrid(
            site="task",
            variant="all",
            task=task.name,
            metric=task.metric,
            penalty=settings.penalty.name,
            baseline=task.baseline,
            learnt=was_learnt(lines, task.baseline),
            weights=tuple(_weights(lines)),
            cells=tuple(_cells(run, task.metric)),
        )
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise StoreError(
            f"expected the cells of a sweep in {run.path.name!r}, got others: {error!r}"[:300],
            hint="sweep again",
            slug="store-damaged",
        ) from error


def _weights(lines: "Iterable[Line]") -> Iterator[SweepWeight]:
    for line in lines:
        apart = line.difference
        yield SweepWeight(
            weight=float(line.weight),
            mean=line.mean,
            sd=_finite(line.sd),
            seeds=len(line.seeds),
            value=_finite(apart and apart.value),
            low=_finite(apart and apart.low),
            high=_finite(apart and apart.high),
            p=_finite(apart and apart.p_holm),
        )


def _cells(run: "Run", metric: str) -> Iterator[SweepCell]:
    """Yield every measure and site of the cells after the last step, and before the first."""
    from isoscope.lab.sweep.cells import TASK, cell_of
    from isoscope.lab.sweep.layout import SHOWN

    last = max(each.step or 0 for each in run.readings)
    judged: dict[tuple[float, int], float] = {}
    for each in run.readings:
        cell = cell_of(each.group)
        if cell and (each.site, each.measure, each.step) == (TASK, metric, last):
            judged[cell] = each.value
    for each in run.readings:
        cell = cell_of(each.group)
        if each.measure not in SHOWN or each.site == TASK:
            continue
        if cell is None:
            yield SweepCell(each.measure, each.site, 0.0, None, each.value, None)
        elif each.step == last and cell in judged:
            weight, seed = cell
            yield SweepCell(each.measure, each.site, weight, seed, each.value, judged[cell])


def _finite(value: float | None) -> float | None:
    return None if value is None or not isfinite(value) else float(value)

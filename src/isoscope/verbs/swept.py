"""A sweep as curves of a page: every cell, and what each weight changes."""

from collections.abc import Mapping
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np

from isoscope.errors import StoreError
from isoscope.lab.sweep.results import sweeps_of
from isoscope.types import Curve

if TYPE_CHECKING:
    from isoscope.store.run import Run

CELLS, WEIGHTS = "sweep-cells", "sweep-weights"


def swept(run: "Run") -> list[Curve]:
    """Return the cells of a sweep and its weights; raise where a run has not both."""
    try:
        found = sweeps_of(run.readings, run.origin)
        weights = {name: np.array(cells) for name, cells in _weights(found).items()}
        cells = {name: np.array(cells) for name, cells in _cells(run, found.shared).items()}
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise StoreError(
            f"expected the cells of a sweep in {run.path.name!r}, got others: {error!r}"[:300],
            hint="sweep again",
            slug="store-damaged",
        ) from error
    return [
        Curve("task", "all", WEIGHTS, weights),
        Curve("task", "all", CELLS, cells),
    ]


def _weights(found: Any) -> dict[str, list[Any]]:
    """Return a row for each weight; what is the same for all stands in every row."""
    shared: Mapping[str, Any] = found.shared
    learnt = {True: "yes", False: "no", None: "unknown"}[shared["learnt"]]
    table: dict[str, list[Any]] = {}
    for line in found:
        apart = line.difference
        row = {
            "weight": float(line.weight),
            "mean": line.mean,
            "sd": _number(line.sd),
            "seeds": len(line.seeds),
            "value": _number(apart and apart.value),
            "low": _number(apart and apart.low),
            "high": _number(apart and apart.high),
            "p": _number(apart and apart.p_holm),
            "task": str(shared["task"]),
            "metric": str(shared["metric"]),
            "penalty": str(shared["penalty"]),
            "baseline": float(shared["baseline"]),
            "learnt": learnt,
        }
        for name, cell in row.items():
            table.setdefault(name, []).append(cell)
    return table


def _cells(run: "Run", shared: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return a row for each cell, measure and site, after the last step; before: seed -1."""
    from isoscope.lab.sweep.cells import TASK, cell_of
    from isoscope.lab.sweep.layout import SHOWN

    last = max(each.step or 0 for each in run.readings)
    judged: dict[tuple[float, int], float] = {}
    for each in run.readings:
        cell = cell_of(each.group)
        if cell and (each.site, each.measure, each.step) == (TASK, shared["metric"], last):
            judged[cell] = each.value
    names = ("measure", "site", "weight", "seed", "geometry", "metric")
    table: dict[str, list[Any]] = {name: [] for name in names}
    for each in run.readings:
        cell = cell_of(each.group)
        if each.measure not in SHOWN or each.site == TASK:
            continue
        if cell is None:
            row = (each.measure, each.site, 0.0, -1, each.value, nan)
        elif each.step == last and cell in judged:
            row = (each.measure, each.site, *cell, each.value, judged[cell])
        else:
            continue
        for name, value in zip(names, row, strict=True):
            table[name].append(value)
    return table


def _number(value: float | None) -> float:
    return nan if value is None else float(value)

"""Cells whose loss was no number any more: which they are, and whether enough are left."""

from collections.abc import Sequence

from isoscope.errors import UndefinedError
from isoscope.lab.sweep.cells import CellRecord, cell_of, group_of


def diverged(records: Sequence[CellRecord]) -> list[str]:
    """Return the names of the cells that diverged."""
    return [
        group_of(each.weight, each.seed)
        for each in records
        if each.diverged is not None and each.weight is not None and each.seed is not None
    ]


def check_left(gone: Sequence[str], weights: Sequence[float], seeds: Sequence[int]) -> None:
    """Refuse a sweep in which nothing is left to compare."""
    lost = {cell_of(group) for group in gone}
    left = {
        weight: {seed for seed in seeds if (weight, seed) not in lost} for weight in weights
    }
    tried = {weight: found for weight, found in left.items() if found}
    if not left[0.0]:
        raise _nothing("without penalty the loss became NaN with every seed", "lower")
    if len(tried) < 2:
        raise _nothing("the loss became NaN with every weight but 0", "take smaller weights or")
    if not set.intersection(*tried.values()):
        raise _nothing(
            "the loss became NaN with every seed, of one weight or another",
            "leave out the weights that diverge or",
        )


def told(gone: Sequence[str]) -> str:
    """Return a remark that names the cells, the seeds of a weight together.

    >>> told(["weight=5,seed=0", "weight=5,seed=3", "weight=-1,seed=0"])
    'diverged and left out: weight 5 with seed 0, 3; weight -1 with seed 0'
    """
    seeds: dict[float, list[str]] = {}
    for cell in map(cell_of, gone):
        if cell is not None:
            seeds.setdefault(cell[0], []).append(str(cell[1]))
    return "diverged and left out: " + "; ".join(
        f"weight {weight:g} with seed {', '.join(found)}" for weight, found in seeds.items()
    )


def _nothing(problem: str, remedy: str) -> UndefinedError:
    return UndefinedError(
        problem,
        hint=f"{remedy} --learning-rate, in another folder; what was found is kept",
        slug="sweep-loss",
    )

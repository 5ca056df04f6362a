"""Cells that diverged: named, told, and too many of them refused."""

import msgspec
import pytest

from isoscope.errors import UndefinedError
from isoscope.lab.sweep.results import (
    CellRecord,
    check_comparable,
    diverged_cells,
    divergence_remark,
    group_of,
)

WEIGHTS, SEEDS = (-1.0, 0.0, 3.0), (0, 1)


def names(*cells):
    return [group_of(weight, seed) for weight, seed in cells]


def test_records_say_which_cells_diverged():
    records = [
        {"readings": []},
        {"weight": 1e39, "seed": 2, "diverged": "why", "readings": []},
        {"weight": 1.0, "seed": 2, "losses": [], "readings": []},
    ]
    assert diverged_cells(msgspec.convert(records, list[CellRecord])) == ["weight=1e+39,seed=2"]


def test_seeds_of_a_weight_are_reported_together():
    assert divergence_remark(names((3.0, 0), (-1.0, 0), (3.0, 1))) == (
        "diverged and excluded: weight 3 with seed 0, 1; weight -1 with seed 0"
    )


@pytest.mark.parametrize(
    "gone", [[], [(3.0, 0)], [(0.0, 1)], [(3.0, 0), (3.0, 1)], [(3.0, 0), (-1.0, 0)]]
)
def test_some_may_diverge(gone):
    assert check_comparable(names(*gone), WEIGHTS, SEEDS) is None


@pytest.mark.parametrize(
    ("gone", "problem"),
    [
        ([(0.0, 0), (0.0, 1)], "without penalty"),
        ([(w, s) for w in WEIGHTS for s in SEEDS], "without penalty"),
        ([(w, s) for w in (-1.0, 3.0) for s in SEEDS], "every weight but 0"),
        ([(-1.0, 0), (3.0, 1)], "of one weight or another"),
    ],
)
def test_where_nothing_is_left_to_compare_that_is_reported(gone, problem):
    with pytest.raises(UndefinedError, match=problem) as caught:
        check_comparable(names(*gone), WEIGHTS, SEEDS)
    assert caught.value.slug == "sweep-loss"

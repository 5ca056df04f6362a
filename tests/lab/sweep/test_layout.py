"""The lines of a sweep as tables."""

from isoscope.display import Results
from isoscope.lab.sweep.results import MEANS, SWEEP_LINES, SweepLine
from isoscope.measures.difference import Difference

SHARED = {
    "model": "m\x1b", "task": "t", "penalty": "istar", "metric": "accuracy", "baseline": 0.5,
    "learnt": True, "diverged": [], "steps": 9, "seeds": 2,
}  # fmt: skip


def line(weight, difference=None, sd=0.07):
    before = {"isoscore-star": {"resid.0": 0.2, "resid.1": 0.4, "resid": 0.9}}
    after = {"isoscore-star": {"resid.0": 0.4, "resid.1": 0.6}}
    return SweepLine(weight, [0, 1], [0.8, 0.9], 0.85, sd, difference, 0.4, before, after)


def test_the_task_stands_above_the_geometry():
    apart = Difference(-0.05, -0.09, -0.01, 0.0001, 0.0002)
    found = Results([line(0.0), line(1.0, apart)], SWEEP_LINES, shared=SHARED, remarks=["mind"])
    task, geometry = found.tables
    assert task.caption == r"model m\x1b, task t, penalty istar, steps 9, seeds 2"
    assert task.warnings == ("mind",)
    cells = {column.head: column.cells for column in task.columns}
    assert cells["accuracy"] == ("0.8500 ±0.0700",) * 2
    assert cells["95 % interval"] == ("", "[-0.090, -0.010]")
    assert cells["p (Holm)"] == ("", "<0.001")
    assert geometry.caption == MEANS
    cells = {column.head: column.cells for column in geometry.columns}
    assert cells == {"weight": ("before", "0", "1"), "isoscore-star": ("0.3", "0.5", "0.5")}


def test_one_seed_has_no_spread_and_no_weights_have_no_rows():
    (task, _) = Results([line(0.0, sd=None)], SWEEP_LINES, shared=SHARED).tables
    assert [column.head for column in task.columns] == ["weight", "accuracy", "loss"]
    (empty,) = Results([], SWEEP_LINES, shared=SHARED).tables
    assert empty.rows == []

"""Cells: units that follow from the settings, and records that follow from the units."""

import msgspec
import pytest
import torch

from isoscope.lab.sweep.penalties import Choice
from isoscope.lab.sweep.results import LOSS, TASK, CellRecord, cell_of, group_of
from isoscope.lab.sweep.spec import Before, Cell
from isoscope.lab.sweep.worker import CellRunner
from isoscope.store.schema import plain_values
from isoscope.training.train import Recipe


@pytest.fixture
def cells(trainer):
    held = trainer()

    def made(penalty="istar", towards="scaled", **given):
        recipe = Recipe(**{"steps": 6, "learning_rate": 5e-3, "evaluate_at": (6,)} | given)
        choice = Choice(penalty, towards=towards)
        return CellRunner(held, choice, recipe, "first", 32, 1)

    return made


def test_a_record_has_the_metric_the_loss_and_the_geometry(cells):
    made = cells()
    before, cell = (made.run(unit) for unit in (Before(), Cell(-3.0, 0)))
    assert {each["step"] for each in before["readings"]} == {0}
    found = [
        each
        for record in (before, cell)
        for each in msgspec.convert(plain_values(record), CellRecord).readings
    ]
    after = [each for each in found if each.group == group_of(-3.0, 0)]
    assert {each.step for each in after} == {6}
    assert {e.measure for e in after if e.site == TASK} == {"accuracy", LOSS}
    assert {e.site for e in after} == {TASK, "resid", "resid.0", "resid.1", "resid.2"}
    assert len(cell["losses"]) == 6 and cell["seconds"] > 0


def test_the_generator_of_torch_is_left_as_it_was(cells):
    made = cells()
    torch.manual_seed(4)
    before = torch.get_rng_state()
    made.run(Cell(-3.0, 0))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_streamed_matrix_is_found_once_for_the_start_and_again_each_epoch(cells):
    made = cells(towards="streamed", steps=10, evaluate_at=(10,))
    first = made.run(Cell(-3.0, 0))
    assert made.stable is not None
    kept = made.stable.clone()
    again = made.run(Cell(-3.0, 0))
    assert torch.equal(made.stable, kept)
    assert again["losses"] == first["losses"]
    fresh = cells(towards="streamed", steps=10, evaluate_at=(10,))
    assert fresh.run(Cell(-3.0, 0))["losses"] == first["losses"]


@pytest.mark.parametrize("towards", ["scaled", "running", "streamed"])
def test_a_cell_that_diverges_has_a_reason_and_no_readings(cells, towards):
    made = cells(towards=towards, steps=10, evaluate_at=(1, 8, 10))
    plain, lost = (made.run(Cell(weight, 0)) for weight in (0.0, 1e39))
    assert lost["readings"] == [] and "NaN" in lost["diverged"]
    assert "diverged" not in plain and plain["readings"]
    assert made.run(Cell(0.0, 0))["losses"] == plain["losses"]


def test_a_cell_may_diverge_with_the_last_step_of_an_epoch(cells):
    made = cells(towards="streamed", steps=2, batch=128, evaluate_at=(2,))
    assert "NaN" in made.run(Cell(1e39, 0))["diverged"]


@pytest.mark.parametrize(
    ("weight", "name"), [(-3.0, "-3"), (0.0, "0"), (0.1, "0.1"), (1e-9, "1e-09")]
)
def test_a_cell_is_found_by_its_name(weight, name):
    assert group_of(weight, 12) == f"weight={name},seed=12"
    assert cell_of(group_of(weight, 12)) == (weight, 12)
    assert cell_of("") is None

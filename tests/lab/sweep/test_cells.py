"""Cells: units that follow from the settings, and records that follow from the units."""

import pytest
import torch

from isoscope.lab.sweep.cells import LOSS, TASK, Cells, cell_of, group_of, readings_of
from isoscope.lab.sweep.penalties import checked_choice
from isoscope.lab.sweep.train import Recipe


@pytest.fixture
def cells(trainer):
    held = trainer()

    def made(penalty="istar", weights=(-3.0, 0.0), seeds=(0, 1), towards="scaled", **given):
        recipe = Recipe(**{"steps": 6, "learning_rate": 5e-3, "evaluate_at": (6,)} | given)
        choice = checked_choice(penalty, towards=towards)
        return Cells(held, choice, recipe, weights, seeds, 32, 32, 1)

    return made


def test_units_are_the_start_and_every_weight_and_seed(cells):
    units = cells().units().units
    assert "before" in units[0].task
    assert [(u.task["seed"], u.task["weight"]) for u in units[1:]] == [
        (0, -3.0), (0, 0.0), (1, -3.0), (1, 0.0)
    ]  # fmt: skip


def test_their_names_follow_from_everything_that_decides_a_number(cells):
    same = cells().units().id
    assert cells().units().id == same
    assert cells(seeds=(0, 2)).units().id != same
    assert cells(steps=7).units().id != same
    assert cells("cosreg").units().id != same
    assert cells(towards="running").units().id != same


def test_a_record_has_the_metric_the_loss_and_the_geometry(cells):
    made = cells()
    before, cell, *_ = (made.done(unit) for unit in made.units().units[:2])
    assert {each["step"] for each in before["readings"]} == {0}
    found = readings_of([before, cell], "run")
    after = [each for each in found if each.group == group_of(-3.0, 0)]
    assert {each.step for each in after} == {6} and {each.run for each in found} == {"run"}
    assert {e.measure for e in after if e.site == TASK} == {"accuracy", LOSS}
    assert {e.site for e in after} == {TASK, "resid", "resid.0", "resid.1", "resid.2"}
    assert len(cell["losses"]) == 6 and cell["seconds"] > 0


def test_the_generator_of_torch_is_left_as_it_was(cells):
    made = cells()
    torch.manual_seed(4)
    before = torch.get_rng_state()
    made.done(made.units().units[1])
    assert torch.equal(torch.get_rng_state(), before)


def test_a_streamed_matrix_is_found_once_for_the_start_and_again_each_epoch(cells):
    made = cells(towards="streamed", steps=10, evaluate_at=(10,))
    units = made.units().units
    first = made.done(units[1])
    assert made.stable is not None
    kept = made.stable.clone()
    again = made.done(units[1])
    assert torch.equal(made.stable, kept)
    assert again["losses"] == first["losses"]
    fresh = cells(towards="streamed", steps=10, evaluate_at=(10,))
    assert fresh.done(units[1])["losses"] == first["losses"]


@pytest.mark.parametrize("towards", ["scaled", "running", "streamed"])
def test_a_cell_that_diverges_has_a_reason_and_no_readings(cells, towards):
    made = cells(weights=(0.0, 1e39), towards=towards, steps=10, evaluate_at=(1, 8, 10))
    _, plain, lost = (made.done(unit) for unit in made.units().units[:3])
    assert lost["readings"] == [] and "NaN" in lost["diverged"]
    assert "diverged" not in plain and plain["readings"]
    assert made.done(made.units().units[1])["losses"] == plain["losses"]


def test_a_cell_may_diverge_with_the_last_step_of_an_epoch(cells):
    made = cells(weights=(0.0, 1e39), towards="streamed", steps=2, batch=128, evaluate_at=(2,))
    assert "NaN" in made.done(made.units().units[2])["diverged"]


@pytest.mark.parametrize(
    ("weight", "name"), [(-3.0, "-3"), (0.0, "0"), (0.1, "0.1"), (1e-9, "1e-09")]
)
def test_a_cell_is_found_by_its_name(weight, name):
    assert group_of(weight, 12) == f"weight={name},seed=12"
    assert cell_of(group_of(weight, 12)) == (weight, 12)
    assert cell_of("") is None

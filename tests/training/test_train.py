"""The training loop by itself, on a line that is learnt."""

import io

import numpy as np
import pytest
import torch
from torch import nn

from isoscope.training.train import (
    DivergedError,
    Recipe,
    check_finite,
    copy_weights,
    epoch_batches,
    train,
)

LENGTHS = np.arange(40)


def fit(seed=0, recipe=None, begin_epoch=None):
    """Return the losses of a linear layer that learns y = 3 x, and the steps evaluated."""
    torch.manual_seed(1)
    layer = nn.Linear(1, 1)
    rows = torch.linspace(-1, 1, 40)[:, None]
    steps = []

    def loss_of(places):
        loss = nn.functional.mse_loss(layer(rows[places]), 3 * rows[places])
        return check_finite(float(loss.detach()), "the loss"), loss

    recipe = recipe or Recipe(60, 8, 0.3, (30, 60))
    losses = train(
        [layer],
        recipe,
        LENGTHS,
        loss_of,
        seed=seed,
        evaluate=steps.append,
        begin_epoch=begin_epoch,
    )
    return losses, steps, layer


def test_a_line_is_learnt_and_evaluated_after_the_steps_of_the_recipe():
    losses, steps, layer = fit()
    assert len(losses) == 60 and steps == [30, 60]
    assert losses[-1] < 0.01 * losses[0]
    assert layer.weight.item() == pytest.approx(3, abs=0.2)


def test_the_seed_decides_the_order_and_nothing_else_does():
    assert fit()[0] == fit()[0]
    assert fit()[0] != fit(seed=1)[0]
    batches = epoch_batches(LENGTHS, 8, 3, 0)
    assert sorted(place for batch in batches for place in batch) == list(range(40))


def test_every_epoch_begins_once():
    epochs = []
    fit(recipe=Recipe(12, 8, 0.1), begin_epoch=epochs.append)
    assert epochs == [0, 1, 2]


def test_the_learning_rate_rises_then_falls_to_nothing():
    before = fit(recipe=Recipe(20, 8, 0.3))[2]
    later = fit(recipe=Recipe(20, 8, 0.0))[2]
    torch.manual_seed(1)
    start = nn.Linear(1, 1)
    assert torch.equal(later.weight, start.weight)
    assert not torch.equal(before.weight, start.weight)


def test_a_loss_that_is_not_finite_stops_it():
    with pytest.raises(DivergedError, match="the loss is NaN or infinite"):
        fit(recipe=Recipe(60, 8, 1e38))


def test_a_copy_of_weights_does_not_move_with_them():
    layer = nn.Linear(2, 2)
    kept = copy_weights(layer)
    with torch.no_grad():
        layer.weight.add_(1)
    assert not torch.equal(kept["weight"], layer.weight)
    layer.load_state_dict(kept)
    assert torch.equal(kept["weight"], layer.weight)


@pytest.mark.parametrize("stop", [1, 7, 20])
def test_a_snapshot_goes_on_to_the_same_weights(stop):
    kept = {}

    def fitted(resume=None):
        torch.manual_seed(1)
        layers = nn.Sequential(nn.Linear(1, 4), nn.Dropout(0.3), nn.Linear(4, 1))
        rows = torch.linspace(-1, 1, 40)[:, None]

        def loss_of(places):
            loss = nn.functional.mse_loss(layers(rows[places]), 3 * rows[places])
            return float(loss.detach()), loss

        def after(step, snapshot):
            if step == stop and resume is None:
                torch.save(snapshot(), buffer := io.BytesIO())
                kept["snapshot"] = buffer

        values = train(
            [layers],
            Recipe(20, 8, 0.1),
            LENGTHS,
            loss_of,
            seed=0,
            evaluate=lambda _: None,
            resume=resume,
            after=after,
        )
        return values, copy_weights(layers)

    whole, weights = fitted()
    kept["snapshot"].seek(0)
    again, resumed = fitted(torch.load(kept["snapshot"], weights_only=True))
    assert again == whole
    assert all(torch.equal(weights[name], resumed[name]) for name in weights)

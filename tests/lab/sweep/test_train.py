"""Training a cell: the same every time, from the same weights, towards what was asked."""

import numpy as np
import pytest
import torch

from isoscope.control import IStar
from isoscope.training.train import DivergedError, Recipe


def recipe(steps=12, **given):
    usual = {"learning_rate": 5e-3, "evaluate_at": (steps,)}
    return Recipe(steps, **(usual | given))


def run(held, recipe, seed=0, penalty=None, at="mean"):
    found = []
    losses = held.cell(
        recipe,
        seed,
        penalty,
        lambda step, head: found.append((step, *held.evaluate(head))),
        at=at,
    )
    return losses, found


def test_a_cell_is_the_same_whatever_was_trained_before_it(trainer):
    held = trainer()
    losses, found = run(held, recipe())
    run(held, recipe(), seed=1, penalty=IStar(-5.0))
    again, once_more = run(held, recipe())
    assert (again, once_more) == (losses, found)
    assert run(held, recipe(), seed=1)[0] != losses


def test_the_weights_come_back(trainer):
    held = trainer()
    before = {name: tensor.clone() for name, tensor in held.body.state_dict().items()}
    run(held, recipe())
    assert any(not torch.equal(before[n], t) for n, t in held.body.state_dict().items())
    held.reset()
    assert all(torch.equal(before[n], t) for n, t in held.body.state_dict().items())
    assert not any(p.requires_grad for p in held.body.parameters())


@pytest.mark.parametrize(
    "asked",
    [
        {"label": "stars"},
        {"score": "score"},
        {"answer": "answer"},
        {"label": "stars", "pair": "other"},
    ],
    ids=lambda asked: "-".join(asked),
)
def test_every_kind_of_task_is_learnt(trainer, asked):
    losses, ((_, metric, _),) = run(trainer(**asked), recipe(60))
    assert np.mean(losses[-10:]) < 0.8 * np.mean(losses[:10])
    assert metric > (0.2 if "answer" in asked else 0.6)


def test_a_step_with_weight_nearly_zero_is_a_step_without(trainer):
    """The penalty draws from a generator of its own: dropout stays paired."""
    held = trainer()
    plain, _ = run(held, recipe(4))
    near, _ = run(held, recipe(4), penalty=IStar(1e-12))
    assert near == pytest.approx(plain, rel=1e-5)


def test_held_out_examples_are_tried_after_the_steps_requested(trainer):
    held = trainer()
    _, found = run(held, recipe(6, evaluate_at=(2, 4, 6)))
    assert [step for step, *_ in found] == [2, 4, 6]


def test_epochs_begin_anew_and_are_reported(trainer):
    held = trainer()
    seen = []
    held.cell(
        recipe(20), 0, IStar(1.0), lambda *_: None, lambda penalty, epoch: seen.append(epoch)
    )
    assert seen == [0, 1, 2]  # eight batches of sixteen an epoch


def test_a_loss_that_is_no_number_is_reported(trainer):
    held = trainer()
    held.start["embeddings.word_embeddings.weight"].fill_(float("nan"))
    with pytest.raises(DivergedError, match="training step"):
        run(held, recipe(2))


def test_a_loss_that_is_lost_with_the_last_step_is_reported(trainer):
    with pytest.raises(DivergedError, match="held-out"):
        run(trainer(), recipe(1), penalty=IStar(1e39))


def test_a_decoder_is_trained_as_well(speaker, reviews):
    from isoscope.lab.sweep.encode import Encoder
    from isoscope.lab.sweep.examples import read_task
    from isoscope.lab.sweep.fine_tune import Trainer
    from isoscope.lab.sweep.spec import SweepSpec
    from isoscope.study.model import subject_of

    subject = subject_of(speaker)
    task = read_task(SweepSpec.of(model="m", data=str(reviews), label="stars"))
    encoder = Encoder(subject, 32)
    train, test = (encoder.encode(task, each) for each in (task.train, task.test))
    held = Trainer(subject, task, encoder, train, test)
    losses, _ = run(held, recipe(3), penalty=IStar(1.0), at="last")
    assert len(losses) == 3 and np.isfinite(losses).all()

"""The training loop: batches by seed, AdamW with a schedule, evaluation, divergence.

What is trained, and on which loss, is the caller's: the loop sees modules and a function
that returns the loss of some examples.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count, islice
from math import isfinite
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from isoscope.dataclass import dataclass
from isoscope.types import Array

WARMUP = 0.1  # share of the steps over which the learning rate rises
DECAY = 0.01  # of weights, towards zero
MOST = 1.0  # norm that gradients are cut to
POOL = 16  # batches within which examples of like length stand together
Weights = dict[str, Tensor]
Snapshot = dict[str, Any]  # all that training goes on from, as torch writes it to a file


@dataclass(frozen=True)
class Recipe:
    """How a model is trained."""

    steps: int = 200
    batch: int = 16
    learning_rate: float = 1e-4
    evaluate_at: tuple[int, ...] = ()  # steps after which the model is evaluated


class DivergedError(Exception):
    """The loss became NaN or infinite; the message says which."""


def check_finite(value: float, what: str) -> float:
    """Return a loss, or raise where it is NaN or infinite."""
    if not isfinite(value):
        raise DivergedError(f"{what} is NaN or infinite")
    return value


def copy_weights(module: nn.Module) -> Weights:
    """Return a copy of all weights, to start again from them."""
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}


def train(
    modules: Sequence[nn.Module],
    recipe: Recipe,
    lengths: Array,
    loss_of: Callable[[list[int]], tuple[float, Tensor]],
    *,
    seed: int,
    evaluate: Callable[[int], None],
    begin_epoch: Callable[[int], None] | None = None,
    resume: Snapshot | None = None,
    after: Callable[[int, Callable[[], Snapshot]], None] | None = None,
) -> list[float]:
    """Train modules on examples of these lengths, and return the value of each step.

    `loss_of` takes the places of the examples of a batch and returns the value to record and
    the loss to minimise. `evaluate` is called after the steps of the recipe, `begin_epoch` at
    the start of an epoch. The order of examples follows from the seed alone.

    `after` is called with the number of each step that is done, and a function that returns
    a snapshot: training that is resumed from it ends with the same weights.
    """
    parameters = [p for module in modules for p in module.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(
        parameters,
        lr=recipe.learning_rate,
        weight_decay=DECAY,
        # A tenth of the time: otherwise it is a third of a step on short texts.
        fused=parameters[0].device.type in ("cpu", "cuda"),
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, partial(_rise_and_fall, recipe.steps)
    )
    values: list[float] = []
    state = State(modules, optimiser, schedule, values)
    done = 0 if resume is None else state.load(resume)
    batches = enumerate(_batches(lengths, recipe, seed), start=1)
    for step, (epoch, places) in islice(batches, done, None):
        if begin_epoch is not None and epoch is not None:
            begin_epoch(epoch)
        for module in modules:
            module.train()
        value, loss = loss_of(places)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, MOST)
        optimiser.step()
        schedule.step()
        values.append(value)
        if step in recipe.evaluate_at:
            evaluate(step)
        if after is not None:
            after(step, partial(state.snapshot, step))
    return values


@dataclass(frozen=True)
class State:
    """What changes while modules are trained."""

    modules: Sequence[nn.Module]
    optimiser: torch.optim.Optimizer
    schedule: torch.optim.lr_scheduler.LambdaLR
    values: list[float]

    def snapshot(self, step: int) -> Snapshot:
        """Return all that training goes on from; it is to be written before the next step."""
        return {
            "step": step,
            "modules": [module.state_dict() for module in self.modules],
            "optimiser": self.optimiser.state_dict(),
            "schedule": self.schedule.state_dict(),
            "random": torch.get_rng_state(),
            "values": list(self.values),
        }

    def load(self, found: Snapshot) -> int:
        """Go back to a snapshot, and return its step."""
        for module, weights in zip(self.modules, found["modules"], strict=True):
            module.load_state_dict(weights)
        self.optimiser.load_state_dict(found["optimiser"])
        self.schedule.load_state_dict(found["schedule"])
        torch.set_rng_state(found["random"])
        self.values.extend(found["values"])
        return int(found["step"])


def epoch_batches(lengths: Array, batch: int, seed: int, epoch: int) -> list[list[int]]:
    """Return batches of an epoch: shuffled by the seed, like lengths beside each other.

    Sorting by length within a few batches saves a third of the padding, and the order does
    not depend on the loss, so that runs of one seed can be compared.
    """
    rng = np.random.default_rng([seed, 11, epoch])
    shuffled = rng.permutation(len(lengths))
    # What fills no batch is dropped here: once sorted, it would always be the longest.
    shuffled = shuffled[: len(shuffled) // batch * batch or len(shuffled)]
    batches: list[list[int]] = []
    for start in range(0, len(shuffled), batch * POOL):
        pool = shuffled[start : start + batch * POOL]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += [pool[at : at + batch].tolist() for at in range(0, len(pool), batch)]
    return [batches[int(place)] for place in rng.permutation(len(batches))]


def _batches(
    lengths: Array, recipe: Recipe, seed: int
) -> Iterator[tuple[int | None, list[int]]]:
    """Yield one batch per step; the first of an epoch with the number of that epoch."""
    endless = (
        (epoch if number == 0 else None, places)
        for epoch in count()
        for number, places in enumerate(epoch_batches(lengths, recipe.batch, seed, epoch))
    )
    return islice(endless, recipe.steps)


def _rise_and_fall(steps: int, step: int) -> float:
    warm = max(1, round(WARMUP * steps))
    if step < warm:
        return (step + 1) / warm
    return max(0.0, (steps - step) / max(1, steps - warm))

"""The cells of a sweep: what each has to do, doing it, and its record."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from time import perf_counter
from typing import Any

import msgspec
import torch
from torch import Tensor

from isoscope.capture.feed import Batch
from isoscope.capture.runner import threads
from isoscope.control import IStar, Penalty
from isoscope.errors import StreamError
from isoscope.lab.sweep.encode import order
from isoscope.lab.sweep.geometry import geometry
from isoscope.lab.sweep.head import Head
from isoscope.lab.sweep.penalties import STREAMED, Choice
from isoscope.lab.sweep.spec import Before, Cell
from isoscope.lab.sweep.train import DivergedError, Recipe, Trainer
from isoscope.types import Reading

TASK = "task"  # the site of how well the task is done
LOSS = "loss"
STREAM = 250_000  # tokens of a streamed matrix, as published
STREAM_BATCH = 64


class CellRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a unit has found, as far as the sweep as a whole needs it."""

    weight: float | None = None  # None for the model as it came
    seed: int | None = None
    diverged: str | None = None  # why, where it did
    readings: list[Reading]


@dataclass
class Cells:
    """A trainer, and everything that decides what it will find."""

    trainer: Trainer
    choice: Choice
    recipe: Recipe
    probe: int  # held-out examples whose geometry is measured
    length: int
    threads: int
    stable: Tensor | None = field(default=None, repr=False)  # of the weights all start from

    def run(self, unit: Before | Cell) -> dict[str, Any]:
        """Do a unit, and return its record."""
        with threads(self.threads), torch.random.fork_rng(devices=[]):
            if isinstance(unit, Before):
                self.trainer.reset()
                return {"readings": [asdict(each) for each in self._geometry("", 0)]}
            return self._cell(unit.weight, unit.seed)

    def _cell(self, weight: float, seed: int) -> dict[str, Any]:
        group = group_of(weight, seed)
        found: list[Reading] = []
        trainer, task = self.trainer, self.trainer.task
        start = perf_counter()

        def tried(step: int, head: Head) -> None:
            trial = trainer.tried(head, step)
            for name, value in ((task.metric, trial.metric), (LOSS, trial.loss)):
                n = len(trainer.test)
                found.append(
                    Reading("", TASK, "all", group, step, name, value, None, None, n, 1)
                )
            found.extend(self._geometry(group, step))

        penalty = self.choice.at(weight, seed) if weight else None
        begin = self._begin if self.choice.towards == STREAMED else None
        try:
            losses = trainer.cell(self.recipe, seed, penalty, tried, begin)
        except DivergedError as error:
            # What was found on the way says nothing of the end, and is not kept.
            return {"weight": weight, "seed": seed, "diverged": str(error), "readings": []}
        return {
            "weight": weight,
            "seed": seed,
            "losses": losses,
            "seconds": perf_counter() - start,
            "readings": [asdict(each) for each in found],
        }

    def _geometry(self, group: str, step: int) -> list[Reading]:
        return geometry(
            self.trainer.subject,
            self._probes(),
            zeta=self.choice.zeta,
            group=group,
            step=step,
        )

    def _probes(self, batch: int = 32) -> list[Batch]:
        test = self.trainer.test
        places = sorted(
            range(min(self.probe, len(test))), key=lambda place: test.prepared[place].length
        )
        parts = [places[start : start + batch] for start in range(0, len(places), batch)]
        return [self.trainer.batch(test, part) for part in parts]

    def _begin(self, penalty: Penalty, epoch: int) -> None:
        """Find the matrix anew at the start of an epoch; all cells share the first."""
        assert isinstance(penalty, IStar)
        if epoch == 0 and self.stable is not None:
            penalty.shrinkage = self.stable.clone()
            return
        train = self.trainer.train
        batches = (
            self.trainer.batch(train, places).inputs
            for places in order(train, STREAM_BATCH, 0, epoch)
        )
        try:
            penalty.stream(self.trainer.body, batches, tokens=STREAM)
        except StreamError as error:
            if epoch == 0:
                raise
            # The last step of an epoch left no finite state behind.
            raise DivergedError("the states of an epoch are NaN or infinite") from error
        if epoch == 0 and penalty.shrinkage is not None:
            self.stable = penalty.shrinkage.clone()


def group_of(weight: float, seed: int) -> str:
    """Return the name of a cell among readings.

    >>> group_of(-0.5, 3)
    'weight=-0.5,seed=3'
    """
    return f"weight={weight!r},seed={seed}".replace(".0,", ",")


def cell_of(group: str) -> tuple[float, int] | None:
    """Return weight and seed of a cell, or None for the model as it came.

    >>> cell_of("weight=-0.5,seed=3")
    (-0.5, 3)
    """
    if not group:
        return None
    parts = dict(part.split("=", 1) for part in group.split(","))
    return float(parts["weight"]), int(parts["seed"])


def cell_records(records: Sequence[object]) -> list[CellRecord]:
    """Return the records of units as typed values."""
    return msgspec.convert(records, list[CellRecord])


def readings_of(records: Sequence[CellRecord], run: str) -> list[Reading]:
    """Return the readings of all units, under the name of their run."""
    return [replace(each, run=run) for record in records for each in record.readings]

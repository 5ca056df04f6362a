"""Fine-tuning one cell of a sweep: a weight and a seed, from the same weights every time."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from isoscope.capture.feed import Batch
from isoscope.control import Penalty, PenaltyListener, penalised
from isoscope.lab.probe.sentence_states import At
from isoscope.lab.sweep.encode import Encoded, Encoder, order
from isoscope.lab.sweep.head import Head
from isoscope.lab.sweep.metric import METRICS
from isoscope.lab.sweep.task import Task
from isoscope.study.model import ModelSites

WARMUP = 0.1  # share of the steps over which the learning rate rises
DECAY = 0.01  # of weights, towards zero
LONGEST = 1.0  # norm that gradients are cut to


@dataclass(frozen=True)
class Recipe:
    """How a cell is trained."""

    steps: int = 200
    batch: int = 16
    learning_rate: float = 1e-4
    evaluate_at: tuple[int, ...] = ()  # steps after which held-out examples are tried
    at: At = "first"


class DivergedError(Exception):
    """The loss is no number any more; the message says where."""


@dataclass(frozen=True)
class Trial:
    """How the held-out examples went after some steps."""

    step: int
    metric: float
    loss: float


class Trainer:
    """The model and its task; every cell starts from the weights the model came with."""

    def __init__(
        self, subject: ModelSites, task: Task, encoder: Encoder, train: Encoded, test: Encoded
    ) -> None:
        self.subject = subject
        self.task = task
        self.encoder = encoder
        self.train, self.test = train, test
        self.body: nn.Module = subject.loaded.body
        self.start = {
            name: tensor.detach().clone() for name, tensor in self.body.state_dict().items()
        }
        config: Any = self.body.config
        self.width = int(config.hidden_size)

    def reset(self) -> None:
        """Give the model the weights it came with."""
        self.body.load_state_dict(self.start)
        self.body.eval()

    def batch(self, examples: Encoded, places: Sequence[int]) -> Batch:
        """Return examples side by side."""
        return self.encoder.feed.collate([examples.prepared[place] for place in places])

    def cell(
        self,
        recipe: Recipe,
        seed: int,
        penalty: Penalty | None,
        tried: Callable[[int, Head], None],
        begin: Callable[[Penalty, int], None] | None = None,
    ) -> list[float]:
        """Train once, and return the loss of the task at each step, without the penalty.

        `tried` is called after the steps of the recipe, `begin` at the start of an epoch.
        Dropout, the head and the order of examples follow from the seed alone.
        """
        self.reset()
        torch.manual_seed(seed)
        head = Head(self.width, self.task, self.train, recipe.at).to(self.encoder.feed.device)
        self.body.requires_grad_(True)
        named = [each for each in self.body.parameters() if each.requires_grad]
        optimiser = torch.optim.AdamW(
            [*named, *head.parameters()],
            lr=recipe.learning_rate,
            weight_decay=DECAY,
            # A tenth of the time: otherwise it is a third of a step on short texts.
            fused=self.encoder.feed.device.type in ("cpu", "cuda"),
        )
        schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, _rise_and_fall(recipe.steps))
        losses: list[float] = []
        listener = None if penalty is None else penalised(self.body, penalty)
        try:
            for step, (epoch, places) in enumerate(self._batches(recipe, seed), start=1):
                if penalty is not None and begin is not None and epoch is not None:
                    begin(penalty, epoch)
                self.body.train()
                head.train()
                losses.append(self._step(head, listener, places, optimiser, named))
                schedule.step()
                if step in recipe.evaluate_at:
                    tried(step, head)
        finally:
            self.body.requires_grad_(False)
            self.body.eval()
        return losses

    def _batches(self, recipe: Recipe, seed: int) -> Iterator[tuple[int | None, list[int]]]:
        """Yield as many batches as there are steps; the first of an epoch with its number."""
        left, epoch = recipe.steps, 0
        while left:
            first: int | None = epoch
            for places in order(self.train, recipe.batch, seed, epoch)[:left]:
                yield first, places
                first, left = None, left - 1
            epoch += 1

    def _step(
        self,
        head: Head,
        listener: PenaltyListener | None,
        places: list[int],
        optimiser: torch.optim.Optimizer,
        parameters: list[nn.Parameter],
    ) -> float:
        batch = self.batch(self.train, places)
        with listener or nullcontext():
            output = self.body(**batch.inputs)
            mask = batch.marks("", _states(output).shape[1]).real
            extra = None if listener is None else listener(mask)
        task = head.loss(head(_states(output), batch), self.train.targets[places])
        value = float(task.detach())
        if not isfinite(value):
            raise DivergedError("the loss of a training step is NaN or infinite")
        loss = task if extra is None else task + extra
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_([*parameters, *head.parameters()], LONGEST)
        optimiser.step()
        return value

    @torch.inference_mode()
    def tried(self, head: Head, step: int, batch: int = 64) -> Trial:
        """Return how the held-out examples go."""
        self.body.eval()
        head.eval()
        by_length = sorted(range(len(self.test)), key=lambda i: self.test.prepared[i].length)
        said: dict[int, Any] = {}
        loss = weight = 0.0
        for start in range(0, len(by_length), batch):
            places = by_length[start : start + batch]
            joined = self.batch(self.test, places)
            output = head(_states(self.body(**joined.inputs)), joined)
            targets = self.test.targets[places]
            counted = float((targets[:, 0] >= 0).sum()) if targets.ndim > 1 else len(places)
            loss += float(head.loss(output, targets)) * counted
            weight += counted
            answers = head.answers(output, self.test.chosen(places))
            said.update(zip(places, answers, strict=True))
        if not isfinite(loss):
            raise DivergedError("the loss of held-out examples is NaN or infinite")
        return Trial(step, self.judged(said), loss / max(weight, 1.0))

    def judged(self, said: dict[int, Any]) -> float:
        """Return the metric of what was said of each held-out example."""
        told = [said[place] for place in range(len(self.test))]
        compute = METRICS[self.task.metric].compute
        if self.task.kind == "span":
            return compute(told, [each.target.answers for each in self.test.examples])
        return compute(np.array(told), self.test.targets)


def _states(output: Any) -> Tensor:
    return output.last_hidden_state


def _rise_and_fall(steps: int) -> Callable[[int], float]:
    warm = max(1, round(WARMUP * steps))

    def factor(step: int) -> float:
        if step < warm:
            return (step + 1) / warm
        return max(0.0, (steps - step) / max(1, steps - warm))

    return factor

"""Fine-tuning: a head for labels, scores or spans, and a trainer of one cell after another."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from isoscope.capture.feed import Batch
from isoscope.control import Penalty, PenaltyListener, penalised
from isoscope.lab.sweep.encode import Encoded, Encoder
from isoscope.lab.sweep.task import METRICS, Guess, SweepTask
from isoscope.study.model import At, ModelSites, take_states
from isoscope.training.train import Recipe, check_finite, copy_weights, train
from isoscope.types import Array

DROPOUT = 0.1
LONGEST = 30  # tokens of an answer
STEP = "the loss of a training step"


class TaskHead(nn.Module):
    """A linear map on the state that stands for a text, or on every token for spans."""

    def __init__(self, width: int, task: SweepTask, train: Encoded, at: At) -> None:
        super().__init__()
        self.kind = task.kind
        self.at: At = at
        outputs = {"label": len(task.classes), "score": 1, "span": 2}[task.kind]
        self.dropout = nn.Dropout(DROPOUT)
        self.linear = nn.Linear(width, outputs)
        nn.init.normal_(self.linear.weight, std=0.02)
        nn.init.zeros_(self.linear.bias)
        # Scores are learnt about their mean, in units of their spread.
        scores = train.targets if task.kind == "score" else np.array([0.0, 1.0])
        self.middle, self.spread = float(scores.mean()), float(scores.std())

    def forward(self, states: Tensor, batch: Batch) -> Tensor:
        """Return (documents, outputs), or (documents, positions, 2) for spans."""
        real = batch.marks("", states.shape[1]).real.to(states.device)
        if self.kind == "span":
            logits = self.linear(self.dropout(states))
            return logits.masked_fill(~real[..., None], torch.finfo(logits.dtype).min)
        return self.linear(self.dropout(take_states(states, real, self.at)))

    def loss(self, logits: Tensor, targets: Array) -> Tensor:
        """Return the mean loss; answers that were cut off have none."""
        if self.kind == "label":
            right = torch.from_numpy(targets).to(logits.device)
            return nn.functional.cross_entropy(logits, right)
        if self.kind == "score":
            right = torch.from_numpy((targets - self.middle) / self.spread).to(logits)
            return nn.functional.mse_loss(logits[:, 0], right)
        there = torch.from_numpy(targets).to(logits.device)  # (documents, 2) first, last
        kept = there[:, 0] >= 0
        if not bool(kept.any()):
            return (logits * 0.0).sum()  # not the sum first: that of what is masked is infinite
        ends = [
            nn.functional.cross_entropy(logits[kept, :, side], there[kept, side])
            for side in (0, 1)
        ]
        return (ends[0] + ends[1]) / 2

    def predict(self, logits: Tensor, examples: Encoded) -> list[Guess]:
        """Return the class, the score, or the words of the span of each example."""
        if self.kind == "label":
            return logits.argmax(dim=1).tolist()
        if self.kind == "score":
            return (logits[:, 0].double() * self.spread + self.middle).tolist()
        return [
            _span_words(logits[i, : len(offsets)].double().cpu().numpy(), offsets, each.text)
            for i, (offsets, each) in enumerate(
                zip(examples.offsets, examples.examples, strict=True)
            )
        ]


def _span_words(logits: Array, offsets: Array, text: str) -> str:
    """Return the span of largest sum, within the text and not longer than answers are."""
    inside = offsets[:, 0] >= 0
    if not inside.any():
        return ""
    first = np.where(inside, logits[:, 0], -np.inf)
    last = np.where(inside, logits[:, 1], -np.inf)
    together = first[:, None] + last[None, :]  # (first token, last token)
    n = len(first)
    apart = np.arange(n)[None, :] - np.arange(n)[:, None]
    together[(apart < 0) | (apart >= LONGEST)] = -np.inf
    a, b = np.unravel_index(int(together.argmax()), together.shape)
    return text[offsets[a, 0] : offsets[b, 1]]


class Trainer:
    """The model and its task; every cell starts from the weights the model came with."""

    def __init__(
        self,
        subject: ModelSites,
        task: SweepTask,
        encoder: Encoder,
        train: Encoded,
        test: Encoded,
    ) -> None:
        self.subject = subject
        self.task = task
        self.encoder = encoder
        self.train, self.test = train, test
        self.body: nn.Module = subject.loaded.body
        self.start = copy_weights(self.body)
        self.width = int(self.body.config.hidden_size)  # pyright: ignore

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
        evaluate: Callable[[int, TaskHead], None],
        begin: Callable[[Penalty, int], None] | None = None,
        *,
        at: At = "first",
    ) -> list[float]:
        """Train once, and return the loss of the task at each step, without the penalty.

        `evaluate` is called after the steps of the recipe, `begin` at the start of an epoch.
        Dropout, the head and the order of examples follow from the seed alone.
        """
        self.reset()
        torch.manual_seed(seed)
        head = TaskHead(self.width, self.task, self.train, at).to(self.encoder.feed.device)
        self.body.requires_grad_(True)
        listener = None if penalty is None else penalised(self.body, penalty)
        try:
            return train(
                (self.body, head),
                recipe,
                self.train.lengths,
                lambda places: self._loss(head, listener, places),
                seed=seed,
                evaluate=lambda step: evaluate(step, head),
                begin_epoch=partial(begin, penalty) if penalty and begin else None,
            )
        finally:
            self.body.requires_grad_(False)
            self.body.eval()

    def _loss(
        self, head: TaskHead, listener: PenaltyListener | None, places: list[int]
    ) -> tuple[float, Tensor]:
        """Return the loss of the task, and the loss to minimise."""
        batch = self.batch(self.train, places)
        with listener or nullcontext():
            states: Tensor = self.body(**batch.inputs).last_hidden_state
            penalty = (
                None if listener is None else listener(batch.marks("", states.shape[1]).real)
            )
        task = head.loss(head(states, batch), self.train.targets[places])
        return check_finite(
            float(task.detach()), STEP
        ), task if penalty is None else task + penalty

    @torch.inference_mode()
    def evaluate(self, head: TaskHead, batch: int = 64) -> tuple[float, float]:
        """Return the metric and the mean loss of the held-out examples."""
        self.body.eval()
        head.eval()
        by_length = np.argsort(self.test.lengths, kind="stable").tolist()
        guesses: dict[int, Guess] = {}
        loss = weight = 0.0
        for start in range(0, len(by_length), batch):
            places = by_length[start : start + batch]
            joined = self.batch(self.test, places)
            logits = head(self.body(**joined.inputs).last_hidden_state, joined)
            targets = self.test.targets[places]
            counted = float((targets[:, 0] >= 0).sum()) if targets.ndim > 1 else len(places)
            loss += float(head.loss(logits, targets)) * counted
            weight += counted
            guesses.update(
                zip(places, head.predict(logits, self.test.select(places)), strict=True)
            )
        mean = check_finite(loss, "the loss of held-out examples") / max(weight, 1.0)
        ordered = [guesses[i] for i in range(len(self.test))]
        compute = METRICS[self.task.metric].compute
        if self.task.kind == "span":
            return compute(ordered, [each.span.answers for each in self.test.examples]), mean
        return compute(np.array(ordered), self.test.targets), mean

"""Heads: from the states of the last layer to labels, scores or spans, and their loss."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from isoscope.capture.feed import Batch
from isoscope.lab.probe.sentence_states import WHERE, At, taken
from isoscope.lab.sweep.encode import Encoded
from isoscope.lab.sweep.task import Task
from isoscope.registry import unknown
from isoscope.study.model import ModelSites
from isoscope.types import Array

DROPOUT = 0.1
LONGEST = 30  # tokens of an answer


class Head(nn.Module):
    """A linear map on what stands for a text, or on every token for spans."""

    def __init__(self, width: int, task: Task, train: Encoded, at: At) -> None:
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
            said = self.linear(self.dropout(states))
            return said.masked_fill(~real[..., None], torch.finfo(said.dtype).min)
        return self.linear(self.dropout(taken(states, real, self.at)))

    def loss(self, said: Tensor, targets: Array) -> Tensor:
        """Return the mean loss; answers that were cut off have none."""
        if self.kind == "label":
            right = torch.from_numpy(targets).to(said.device)
            return nn.functional.cross_entropy(said, right)
        if self.kind == "score":
            right = torch.from_numpy((targets - self.middle) / self.spread).to(said)
            return nn.functional.mse_loss(said[:, 0], right)
        there = torch.from_numpy(targets).to(said.device)
        kept = there[:, 0] >= 0
        if not bool(kept.any()):
            return (said * 0.0).sum()  # not the sum first: that of what is masked is infinite
        ends = [
            nn.functional.cross_entropy(said[kept, :, side], there[kept, side])
            for side in (0, 1)
        ]
        return (ends[0] + ends[1]) / 2

    def answers(self, said: Tensor, examples: Encoded) -> list[Any]:
        """Return what is said of each example: a class, a score, or the words of a span."""
        if self.kind == "label":
            return said.argmax(dim=1).tolist()
        if self.kind == "score":
            return (said[:, 0].double() * self.spread + self.middle).tolist()
        return [
            _words(said[i, : len(offsets)].double().cpu().numpy(), offsets, each.text)
            for i, (offsets, each) in enumerate(
                zip(examples.offsets, examples.examples, strict=True)
            )
        ]


def _words(said: Array, offsets: Array, text: str) -> str:
    """Return the span of largest sum, within the text and not longer than answers are."""
    inside = offsets[:, 0] >= 0
    if not inside.any():
        return ""
    first = np.where(inside, said[:, 0], -np.inf)
    last = np.where(inside, said[:, 1], -np.inf)
    together = first[:, None] + last[None, :]
    n = len(first)
    apart = np.arange(n)[None, :] - np.arange(n)[:, None]
    together[(apart < 0) | (apart >= LONGEST)] = -np.inf
    a, b = np.unravel_index(int(together.argmax()), together.shape)
    return text[offsets[a, 0] : offsets[b, 1]]


def place_of(subject: ModelSites, at: str | None) -> At:
    """Return what stands for a text: as asked, as the model pools, or its own mark."""
    for known in WHERE:
        if at == known:
            return known
    if at is not None:
        raise unknown("place of a state", at, WHERE)
    pooling = subject.loaded.pooling
    pools: dict[str, At] = {"mean": "mean", "cls": "first", "last": "last"}
    if pooling is not None and pooling.mode in pools:
        return pools[pooling.mode]
    marks = getattr(subject.loaded.tokenizer, "cls_token_id", None) is not None
    return "first" if marks else "last"

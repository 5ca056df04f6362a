"""How well a task is done: one number each, and what knowing nothing would reach."""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from isoscope.lab.sweep.task import Kind
from isoscope.registry import Registry
from isoscope.types import Array

Compute = Callable[[Any, Any], float]  # what was said, what is right


@dataclass(frozen=True, slots=True)
class Metric:
    """A name, the kind of task it is for, its function, and what knowing nothing reaches."""

    name: str
    kind: Kind
    compute: Compute
    constant: bool = False  # always saying one label has a value; of the others it is zero

    def baseline(self, right: Any) -> float:
        """Return what always giving the best label reaches; zero for the others."""
        if not self.constant:
            return 0.0
        # Of two labels F1 looks at one, rare or not; of more, the commonest is the best.
        likely = np.argsort(np.bincount(right, minlength=2))[-2:]
        return max(self.compute(np.full(len(right), each), right) for each in likely)


METRICS: Registry[Metric] = Registry("metric")


def accuracy(said: Array, right: Array) -> float:
    """Share of labels that are right."""
    return float(np.mean(said == right))


def f1(said: Array, right: Array) -> float:
    """F1 of the last class where there are two, the mean over classes where there are more."""
    classes = max(int(said.max()), int(right.max())) + 1
    wanted = [1] if classes <= 2 else range(classes)
    return float(np.mean([_f1_of(said == each, right == each) for each in wanted]))


def _f1_of(said: Array, right: Array) -> float:
    both, either = float((said & right).sum()), float(said.sum() + right.sum())
    return 2 * both / either if either else 0.0


def matthews(said: Array, right: Array) -> float:
    """Matthews' correlation of labels; 0 where all are said to be one."""
    classes = max(int(said.max()), int(right.max())) + 1
    table = np.zeros((classes, classes))
    np.add.at(table, (right, said), 1.0)
    n, hit = table.sum(), np.trace(table)
    is_, told = table.sum(axis=1), table.sum(axis=0)
    spread = (n * n - told @ told) * (n * n - is_ @ is_)
    return float((hit * n - is_ @ told) / sqrt(spread)) if spread > 0 else 0.0


def pearson(said: Array, right: Array) -> float:
    """Pearson's correlation; 0 where all scores said are the same."""
    a, b = (np.asarray(each, dtype=np.float64) for each in (said, right))
    a, b = a - a.mean(), b - b.mean()
    size = sqrt(float(a @ a) * float(b @ b))
    # A constant has rounding for a spread.
    flat = float(np.abs(a).max()) <= 1e-12 * max(1.0, float(np.abs(said).max()))
    return 0.0 if flat or size == 0 else float(np.clip(a @ b / size, -1, 1))


def spearman(said: Array, right: Array) -> float:
    """Spearman's correlation: Pearson's of the ranks, equal scores sharing theirs."""
    return pearson(_ranks(said), _ranks(right))


def _ranks(values: Array) -> Array:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return ((last - counts + 1 + last) / 2)[place]


def span_f1(said: Sequence[str], right: Sequence[Sequence[str]]) -> float:
    """Mean overlap of words with the nearest answer, as SQuAD counts it."""
    return float(
        np.mean(
            [
                max(_overlap(s, a) for a in answers)
                for s, answers in zip(said, right, strict=True)
            ]
        )
    )


def exact(said: Sequence[str], right: Sequence[Sequence[str]]) -> float:
    """Share of answers that are right to the word, as SQuAD counts it."""
    found = [
        any(_words(s) == _words(answer) for answer in answers)
        for s, answers in zip(said, right, strict=True)
    ]
    return float(np.mean(found))


def _words(text: str) -> list[str]:
    plain = "".join(each for each in text.lower() if each not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", plain).split()


def _overlap(said: str, right: str) -> float:
    a, b = _words(said), _words(right)
    if not a or not b:
        return float(a == b)
    shared = sum((Counter(a) & Counter(b)).values())
    return 2 * shared / (len(a) + len(b))


for _each in (
    Metric("accuracy", "label", accuracy, constant=True),
    Metric("f1", "label", f1, constant=True),
    Metric("matthews", "label", matthews),
    Metric("pearson", "score", pearson),
    Metric("spearman", "score", spearman),
    Metric("span-f1", "span", span_f1),
    Metric("exact", "span", exact),
):
    METRICS.add(_each.name, _each)

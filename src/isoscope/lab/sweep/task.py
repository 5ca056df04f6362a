"""A task: examples to learn from, examples held out, and the metrics it is judged by."""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import blake2b
from math import inf, isfinite, sqrt
from typing import Any, Literal

import numpy as np

from isoscope.dataclass import dataclass
from isoscope.errors import ConfigError, SourceError, TooFewRowsError
from isoscope.registry import Registry
from isoscope.types import Array

Kind = Literal["label", "score", "span"]
Guess = int | float | str  # a class, a score, or the words of an answer
Compute = Callable[[Any, Any], float]  # of guesses and right answers: arrays, or texts
LEAST_SCORES = 8  # examples below which a correlation says nothing


@dataclass(frozen=True, slots=True)
class Span:
    """Where an answer stands in its text, and all answers that count as right."""

    start: int  # in characters
    end: int
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A text or a pair, and its target."""

    text: str
    pair: str | None
    target: str | float | Span  # a label as text, a score, or a Span in the text
    place: str = ""  # file and line, for messages

    @property
    def span(self) -> Span:
        """The target of a question."""
        assert isinstance(self.target, Span)
        return self.target


@dataclass(frozen=True)
class SweepTask:
    """What is learnt, from which examples, and on which others it is evaluated."""

    name: str
    kind: Kind
    metric: str
    train: tuple[Example, ...]
    test: tuple[Example, ...]
    classes: tuple[str, ...] = ()  # of labels
    remarks: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        name: str,
        kind: Kind,
        metric: str,
        train: Sequence[Example],
        test: Sequence[Example] | None,
        *,
        hold_out: float = 0.2,
        seed: int = 0,
        remarks: Sequence[str] = (),
    ) -> "SweepTask":
        """Check the examples, and hold some of them out where there is no test file."""
        read = _with_scores if kind == "score" else tuple
        learnt = read(train)
        classes = _classes(learnt) if kind == "label" else ()
        if test is None:
            learnt, tried = _hold_out(learnt, kind, hold_out, seed)
        else:
            tried = read(test)
        _check_size(learnt, tried, kind, classes)
        return cls(name, kind, metric, learnt, tried, classes, tuple(remarks))

    def numbers(self, examples: Sequence[Example]) -> Array:
        """Return labels as numbers of classes, or scores."""
        if self.kind == "score":
            return np.array([each.target for each in examples], dtype=np.float64)
        place = {label: number for number, label in enumerate(self.classes)}
        return np.array([place[str(each.target)] for each in examples], dtype=np.int64)

    def fingerprint(self, examples: Sequence[Example]) -> str:
        """Return a hash of these examples."""
        digest = blake2b(digest_size=16)
        for each in examples:
            digest.update(repr((each.text, each.pair, each.target)).encode("utf-8", "replace"))
        return digest.hexdigest()

    def describe(self) -> dict[str, object]:
        """Return what a task is, in plain values."""
        return {
            "name": self.name,
            "kind": self.kind,
            "metric": self.metric,
            "classes": list(self.classes),
            "train": [len(self.train), self.fingerprint(self.train)],
            "test": [len(self.test), self.fingerprint(self.test)],
        }


def score_of(target: str | float | Span | None) -> float | None:
    """Return a score as a number; None where it is not a finite one."""
    try:
        score = inf if target is None or isinstance(target, Span) else float(target)
    except ValueError:
        return None
    return score if isfinite(score) else None


def _with_scores(examples: Sequence[Example]) -> tuple[Example, ...]:
    found: list[Example] = []
    for each in examples:
        score = score_of(each.target)
        if score is None:
            raise SourceError(
                f"expected a number as score in {each.place}, got {str(each.target)[:40]!r}",
                hint="name the column of scores; words are labels: --label; --skip-bad drops "
                "and counts such rows",
                slug="task-scores",
            )
        found.append(replace(each, target=score))
    return tuple(found)


def _classes(examples: Sequence[Example]) -> tuple[str, ...]:
    """Return the labels, by number where all are numbers; one example is too few."""
    counts = Counter(str(each.target) for each in examples)
    numbers = {label: score_of(label) for label in counts}
    single = [label for label, count in counts.items() if count < 2]
    if single:
        numeric = all(numbers[label] is not None for label in single)
        looks = "; numbers on a scale are scores: --score" if numeric else ""
        raise TooFewRowsError(
            f"a class needs at least 2 examples, got 1 of {single[0][:40]!r} "
            f"({len(single)} of {len(counts)} classes have one)",
            hint=f"give more examples of it, or drop it{looks}",
            slug="task-class",
        )
    return tuple(
        sorted(numbers, key=lambda each: (numbers[each] is None, numbers[each] or 0.0, each))
    )


def _hold_out(
    examples: tuple[Example, ...], kind: Kind, share: float, seed: int
) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    """Hold a share out, of each class alike."""
    if not 0 < share < 1:
        raise ConfigError(
            f"expected a share between 0 and 1 to hold out, got {share!r}",
            hint="0.2 is usual; or name a file of held-out examples with --test",
            slug="number-range",
        )
    rng = np.random.default_rng([seed, 7])
    groups: dict[str, list[int]] = {}
    for number, each in enumerate(examples):
        groups.setdefault(str(each.target) if kind == "label" else "", []).append(number)
    out: set[int] = set()
    for members in groups.values():
        count = min(max(1, round(share * len(members))), len(members) - 1)
        out.update(rng.permutation(members)[:count].tolist())
    return (
        tuple(each for number, each in enumerate(examples) if number not in out),
        tuple(each for number, each in enumerate(examples) if number in out),
    )


def _check_size(
    train: Sequence[Example], test: Sequence[Example], kind: Kind, classes: tuple[str, ...]
) -> None:
    if len(train) < 2 or len(test) < 2:
        raise TooFewRowsError(
            f"a task needs at least 2 examples to learn from and 2 held out, "
            f"got {len(train)} and {len(test)}",
            hint="give more examples",
            slug="task-class",
        )
    if kind == "label" and len(classes) < 2:
        raise TooFewRowsError(
            f"a task of labels needs at least 2 classes, got {len(classes)}",
            hint="name another column with --label; one class leaves nothing to learn",
            slug="task-class",
        )
    for each in test if kind == "label" else ():
        if each.target not in classes:
            raise SourceError(
                f"expected a label of the training examples in {each.place}, "
                f"got {str(each.target)[:40]!r}",
                hint="both files need the same labels, spelt the same way",
                slug="task-labels",
            )
    if kind == "score":
        for examples in (train, test):
            if len({each.target for each in examples}) < 2 or len(examples) < LEAST_SCORES:
                raise TooFewRowsError(
                    f"a task of scores needs at least {LEAST_SCORES} examples and two "
                    f"different scores, got {len(examples)} with "
                    f"{len({each.target for each in examples})}",
                    hint="give more examples, or name another column with --score",
                    slug="task-scores",
                )


@dataclass(frozen=True, slots=True)
class Metric:
    """A name, the kind of task it is for, its function, and its value without knowledge."""

    name: str
    kind: Kind
    compute: Compute
    constant: bool = False  # always giving one label has a value; otherwise it is zero

    def baseline(self, right: Array | None) -> float:
        """Return what always giving the best label reaches; zero for the others."""
        if not self.constant or right is None:
            return 0.0
        # Of two labels F1 looks at one, rare or not; of more, the commonest is the best.
        likely = np.argsort(np.bincount(right, minlength=2))[-2:]
        return max(self.compute(np.full(len(right), each), right) for each in likely)


METRICS: Registry[Metric] = Registry("metric")


def accuracy(guess: Array, right: Array) -> float:
    """Share of labels that are right."""
    return float(np.mean(guess == right))


def f1(guess: Array, right: Array) -> float:
    """F1 of the last class where there are two, the mean over classes where there are more."""
    classes = max(int(guess.max()), int(right.max())) + 1
    counted = [1] if classes <= 2 else range(classes)
    both = np.array([((guess == each) & (right == each)).sum() for each in counted])
    either = np.array([(guess == each).sum() + (right == each).sum() for each in counted])
    return float(np.mean(2 * both / np.maximum(either, 1)))  # both are zero where either is


def matthews(guess: Array, right: Array) -> float:
    """Matthews' correlation of labels; 0 where all guesses are the same."""
    classes = max(int(guess.max()), int(right.max())) + 1
    table = np.zeros((classes, classes))
    np.add.at(table, (right, guess), 1.0)
    n, hit = table.sum(), np.trace(table)
    actual, guessed = table.sum(axis=1), table.sum(axis=0)
    spread = (n * n - guessed @ guessed) * (n * n - actual @ actual)
    return float((hit * n - actual @ guessed) / sqrt(spread)) if spread > 0 else 0.0


def pearson(guess: Array, right: Array) -> float:
    """Pearson's correlation; 0 where all guesses are the same."""
    a, b = (np.asarray(each, dtype=np.float64) for each in (guess, right))
    a, b = a - a.mean(), b - b.mean()
    size = sqrt(float(a @ a) * float(b @ b))
    # A constant has rounding for a spread.
    flat = float(np.abs(a).max()) <= 1e-12 * max(1.0, float(np.abs(guess).max()))
    return 0.0 if flat or size == 0 else float(np.clip(a @ b / size, -1, 1))


def spearman(guess: Array, right: Array) -> float:
    """Spearman's correlation: Pearson's of the ranks, equal scores sharing theirs."""
    return pearson(_ranks(guess), _ranks(right))


def _ranks(values: Array) -> Array:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return ((last - counts + 1 + last) / 2)[place]


def span_f1(guess: Sequence[str], right: Sequence[Sequence[str]]) -> float:
    """Mean overlap of words with the nearest answer, as SQuAD counts it."""
    pairs = zip(guess, right, strict=True)
    return float(np.mean([max(_overlap(s, a) for a in answers) for s, answers in pairs]))


def exact(guess: Sequence[str], right: Sequence[Sequence[str]]) -> float:
    """Share of answers that are right to the word, as SQuAD counts it."""
    found = [
        any(_answer_words(s) == _answer_words(answer) for answer in answers)
        for s, answers in zip(guess, right, strict=True)
    ]
    return float(np.mean(found))


def _answer_words(text: str) -> list[str]:
    plain = "".join(each for each in text.lower() if each not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", plain).split()


def _overlap(guess: str, right: str) -> float:
    a, b = _answer_words(guess), _answer_words(right)
    if not a or not b:
        return float(a == b)
    return 2 * sum((Counter(a) & Counter(b)).values()) / (len(a) + len(b))


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

"""A task: examples to learn from, examples held out, and how well one does is said."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from math import isfinite
from typing import Any, Literal

import numpy as np

from isoscope.errors import ConfigError, SourceError, TooFewRowsError
from isoscope.types import Array

Kind = Literal["label", "score", "span"]
LEAST_SCORES = 8  # examples below which a correlation says nothing


@dataclass(frozen=True, slots=True)
class Span:
    """Where an answer stands in its text, and all answers that count as right."""

    start: int  # in characters
    end: int
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A text or a pair, and what is to be said of it."""

    text: str
    pair: str | None
    target: Any  # a label as text, a score, or a Span in the text
    place: str = ""  # file and line, for messages


@dataclass(frozen=True)
class Task:
    """What is learnt, from which examples, tried on which others."""

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
    ) -> "Task":
        """Check the examples, and hold some of them out where none were given for that."""
        read = _scored if kind == "score" else _as_given
        learnt = read(train)
        classes = _classes(learnt) if kind == "label" else ()
        if test is None:
            learnt, tried = _parted(learnt, kind, hold_out, seed)
        else:
            tried = read(test)
        _enough(learnt, tried, kind, classes)
        return cls(name, kind, metric, learnt, tried, classes, tuple(remarks))

    def numbers(self, examples: Sequence[Example]) -> Array:
        """Return labels as numbers of classes, or scores."""
        if self.kind == "score":
            return np.array([each.target for each in examples], dtype=np.float64)
        place = {label: number for number, label in enumerate(self.classes)}
        return np.array([place[each.target] for each in examples], dtype=np.int64)

    def fingerprint(self, examples: Sequence[Example]) -> str:
        """Return what tells these examples from any others."""
        digest = blake2b(digest_size=16)
        for each in examples:
            digest.update(repr((each.text, each.pair, each.target)).encode("utf-8", "replace"))
        return digest.hexdigest()


def _as_given(examples: Sequence[Example]) -> tuple[Example, ...]:
    return tuple(examples)


def score_of(target: Any) -> float | None:
    """Return a score as a number; None where it is no finite one."""
    try:
        score = float(target)
    except ValueError:
        return None
    return score if isfinite(score) else None


def _scored(examples: Sequence[Example]) -> tuple[Example, ...]:
    found: list[Example] = []
    for each in examples:
        score = score_of(each.target)
        if score is None:
            raise SourceError(
                f"expected a number as score in {each.place}, got {str(each.target)[:40]!r}",
                hint="name the column of scores; words are labels: --label; --skip-bad (in "
                "Python skip_bad=True) drops and counts such rows",
                slug="task-scores",
            )
        found.append(replace(each, target=score))
    return tuple(found)


def _classes(examples: Sequence[Example]) -> tuple[str, ...]:
    """Return the labels, by number where all are numbers; one example is too few."""
    counts = Counter(each.target for each in examples)
    single = [label for label, count in counts.items() if count < 2]
    if single:
        looks = "; numbers on a scale are scores: --score" if _numeric(single) else ""
        raise TooFewRowsError(
            f"a class needs at least 2 examples, got 1 of {single[0][:40]!r} "
            f"({len(single)} of {len(counts)} classes have one)",
            hint=f"give more examples of it, or leave it out{looks}",
            slug="task-class",
        )
    return tuple(sorted(counts, key=lambda label: (_number(label), label)))


def _numeric(labels: Sequence[str]) -> bool:
    return all(isfinite(_number(label)) for label in labels)


def _number(label: str) -> float:
    try:
        return float(label)
    except ValueError:
        return float("inf")


def _parted(
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
    groups: dict[Any, list[int]] = {}
    for number, each in enumerate(examples):
        groups.setdefault(each.target if kind == "label" else None, []).append(number)
    out: set[int] = set()
    for members in groups.values():
        count = min(max(1, round(share * len(members))), len(members) - 1)
        out.update(rng.permutation(members)[:count].tolist())
    return (
        tuple(each for number, each in enumerate(examples) if number not in out),
        tuple(each for number, each in enumerate(examples) if number in out),
    )


def _enough(
    train: Sequence[Example], test: Sequence[Example], kind: Kind, classes: tuple[str, ...]
) -> None:
    if len(train) < 2 or len(test) < 2:
        raise TooFewRowsError(
            f"a task needs at least 2 examples to learn from and 2 to be tried on, "
            f"got {len(train)} and {len(test)}",
            hint="give more examples",
            slug="task-class",
        )
    if kind == "label":
        _enough_labels(test, classes)
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


def _enough_labels(test: Sequence[Example], classes: tuple[str, ...]) -> None:
    if len(classes) < 2:
        raise TooFewRowsError(
            f"a task of labels needs at least 2 classes, got {len(classes)}",
            hint="name another column with --label; of one class nothing can be learnt",
            slug="task-class",
        )
    for each in test:
        if each.target not in classes:
            raise SourceError(
                f"expected a label of the training examples in {each.place}, "
                f"got {str(each.target)[:40]!r}",
                hint="both files need the same labels, spelt the same way",
                slug="task-labels",
            )

"""Rules that distinguish a collapse from training: functions of the history of a watch.

A rule looks at the history alone, so that a resumed run is judged as one. How often the
defaults raise false alarms, and how soon they detect a planted collapse, is measured in
bench/watch.py.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from statistics import median
from typing import ClassVar

PREFIX = "anisotropy"
LOSS = "loss"
Series = Sequence[tuple[int, float]]  # step and value, in order
History = Mapping[str, Series]  # by name, as it was logged


@dataclass(frozen=True)
class Alert:
    """What a rule has found in a series."""

    rule: str
    step: int
    name: str  # of the series
    value: float
    reference: float

    def __str__(self) -> str:
        return (
            f"{self.rule} at step {self.step}: {self.name} is {self.value:.4g}, "
            f"was {self.reference:.4g}"
        )


AlertRule = Callable[[History], list[Alert]]  # applied to the history after each reading


class SiteRule(ABC):
    """A rule about one measure: at some site the last readings have all crossed a line."""

    measure: ClassVar[str]
    patience: int  # readings in a row
    first: int  # readings that are the reference
    name: str

    @abstractmethod
    def _is_crossed(self, value: float, was: float) -> bool: ...

    def __call__(self, history: History) -> list[Alert]:
        """Return an alert for each site, of held-out texts, or of batches without any."""
        start = f"{PREFIX}/{self.measure}/"
        every = {name: each for name, each in history.items() if name.startswith(start)}
        held_out = {name: each for name, each in every.items() if not name.endswith(".batch")}
        found: list[Alert] = []
        for name, series in (held_out or every).items():
            if len(series) <= self.patience:
                continue
            known = series[: min(self.first, len(series) - self.patience)]
            was = median(value for _, value in known)
            step, value = series[-1]
            if all(self._is_crossed(recent, was) for _, recent in series[-self.patience :]):
                found.append(Alert(self.name, step, name, value, was))
        return found


@dataclass(frozen=True)
class RankFalling(SiteRule):
    """Effective rank stays below a share of what it was in the first readings.

    The default detects a complete collapse: the rank of a healthy language model that is
    trained from scratch falls to a twentieth at first. That of a fine-tuned one does not.
    """

    measure = "effective-rank"
    share: float = 0.03
    patience: int = 2
    first: int = 3
    name: str = "rank-falling"

    def _is_crossed(self, value: float, was: float) -> bool:
        return value < self.share * was


@dataclass(frozen=True)
class CosineRising(SiteRule):
    """Mean cosine has moved most of the way from its first readings to 1, and stays there."""

    measure = "mean-cosine"
    share: float = 0.98  # of the way to 1
    level: float = 0.9  # no alarm below this cosine
    patience: int = 2
    first: int = 3
    name: str = "cosine-rising"

    def _is_crossed(self, value: float, was: float) -> bool:
        return value > max(self.level, was + self.share * (1 - was))


@dataclass(frozen=True)
class DeadDimensions(SiteRule):
    """More dimensions are dead than in the first reading."""

    measure = "dead-dimensions"
    first = 1
    more: float = 0.05  # share of all dimensions
    patience: int = 2
    name: str = "dead-dimensions"

    def _is_crossed(self, value: float, was: float) -> bool:
        return value > was + self.more


@dataclass(frozen=True)
class LossAtChance:
    """The loss is at ln N or above: no better than a guess among N classes, or N in a batch.

    Every training begins there. The alarm is raised where the loss returns to it, or has not
    left it after `grace` readings.
    """

    n: int
    within: float = 0.02  # of ln N
    patience: int = 3  # readings in a row, to leave and to return
    grace: int = 10
    name: str = "loss-at-chance"

    def __call__(self, history: History) -> list[Alert]:
        """Return an alert where nothing is learned any more."""
        series = history.get(LOSS, ())
        chance = log(self.n)
        values = [value for _, value in series]
        recent = values[-self.patience :]
        if len(recent) < self.patience or min(recent) < (1 - self.within) * chance:
            return []
        if len(series) < self.grace and not self._has_left(values, chance):
            return []
        step, value = series[-1]
        return [Alert(self.name, step, LOSS, value, chance)]

    def _has_left(self, values: Sequence[float], chance: float) -> bool:
        """Whether the loss was below chance several times in a row, not in one lucky batch."""
        low = [value < (1 - 2 * self.within) * chance for value in values]
        starts = range(len(low) - self.patience + 1)
        return any(all(low[start : start + self.patience]) for start in starts)


def usual_rules(
    chance: int | None = None, *, fine_tuning: bool = False
) -> tuple[AlertRule, ...]:
    """Return the default rules of a watch; that of ln N only where N is known.

    For a model that was trained before, less is a collapse: the loss of half of its rank, or
    half of the way to one direction.
    """
    rules: list[AlertRule] = [RankFalling(), CosineRising(), DeadDimensions()]
    if fine_tuning:
        rules[:2] = [RankFalling(share=0.5), CosineRising(share=0.5, level=0.5)]
    if chance is not None:
        rules.append(LossAtChance(chance))
    return tuple(rules)

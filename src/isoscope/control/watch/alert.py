"""Rules that distinguish a collapse from training: functions of the history of a watch.

A rule looks at the history alone, so that a resumed run is judged as one. How often the
defaults raise false alarms, and how soon they detect a planted collapse, is measured in
bench/watch.py.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from math import ceil, log, pi, sqrt
from statistics import fmean, median
from typing import ClassVar

from isoscope.dataclass import dataclass

PREFIX = "anisotropy"
LOSS = "loss"
_ROUNDING = 1e-6  # of a loss: a smaller fall is float32's
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
    left it after `grace` readings and does not fall. Losses of single batches are noisy: as
    many of them are averaged as are needed to distinguish chance from the level the loss had
    reached, and the loss has four times as many to leave it; at most `most`.
    """

    n: int
    within: float = 0.02  # of ln N
    patience: int = 3  # readings in a row, at least
    grace: int = 10
    errors: float = 4.5  # standard errors between chance and the level it had reached
    most: int = 500
    name: str = "loss-at-chance"

    def __call__(self, history: History) -> list[Alert]:
        """Return an alert where nothing is learned any more."""
        series = history.get(LOSS, ())
        chance = log(self.n)
        level = (1 - self.within) * chance
        values = [value for _, value in series]
        if len(values) < self.patience or fmean(values[-self.patience :]) < level:
            return []
        noise = _noise(values[-4 * self.most :])
        if self._has_left(values, noise, chance):
            was = median(values[: -self.patience][-4 * self.most :])
            count = self._window(noise, level - was)
            at_chance = len(values) >= count
        else:
            count = self._window(noise, self.within * chance)
            enough = max(self.grace, min(4 * count, self.most) if noise else 0)
            at_chance = len(values) >= enough and not _falls(values, noise)
        seen = values[-count:]
        at_chance &= (min(seen) if count == self.patience else fmean(seen)) >= level
        step, value = series[-1]
        return [Alert(self.name, step, LOSS, value, chance)] if at_chance else []

    def _window(self, noise: float, gap: float) -> int:
        """Return over how many readings a gap is seen through the noise."""
        if noise == 0:
            return self.patience
        if gap <= 0:
            return self.most
        return min(max(self.patience, ceil((self.errors * noise / gap) ** 2)), self.most)

    def _has_left(self, values: Sequence[float], noise: float, chance: float) -> bool:
        """Whether the mean of some readings in a row, not of lucky batches, was below."""
        sums = [0.0, *accumulate(values)]
        window = self.patience
        while window <= min(self.most, len(values) - self.patience):
            gap = max(2 * self.within * chance, self.errors * noise / sqrt(window))
            ends = range(window, len(values) - self.patience + 1)
            if any(sums[end] - sums[end - window] < window * (chance - gap) for end in ends):
                return True
            window *= 4
        return False


def _noise(values: Sequence[float]) -> float:
    """Return the standard deviation of a reading, from the steps between neighbours.

    A slow fall hardly counts; the mean absolute step of normal noise is 2 / sqrt(pi) of it.
    """
    steps = [abs(after - before) for before, after in pairwise(values)]
    return fmean(steps) * sqrt(pi) / 2


def _falls(values: Sequence[float], noise: float) -> bool:
    """Whether the later half is below the earlier one by more than two standard errors.

    And by more than float32 rounds: a loss that is constant but for a last bit does not fall.
    """
    half = len(values) // 2
    before = fmean(values[:half])
    least = max(2 * noise * sqrt(2 / half), _ROUNDING * abs(before))
    return before - fmean(values[-half:]) > least


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

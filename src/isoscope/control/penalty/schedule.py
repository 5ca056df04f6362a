"""How strong a penalty is at each step: warm-up, then a constant or falling weight."""

from collections.abc import Callable
from dataclasses import dataclass
from math import cos, isfinite, pi
from typing import Any

from isoscope.errors import ConfigError

Factor = Callable[[int], float]  # optimiser step, from 0: what the weight is multiplied by


@dataclass(frozen=True)
class Schedule:
    """A weight, raised linearly over the first steps and shaped by a factor after that.

    Calls are counted, so with gradient accumulation `accumulate` says how many of them
    make one step of the optimiser.
    """

    weight: float
    warmup: int = 0
    factor: Factor | None = None
    accumulate: int = 1

    def __post_init__(self) -> None:
        checked(self.weight)
        for name, least in (("warmup", 0), ("accumulate", 1)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise ConfigError(
                    f"expected a whole number of {least} or more as {name}, got {value!r}",
                    hint="warmup counts optimiser steps, accumulate the batches of one step",
                    slug="penalty-steps",
                )

    def at(self, call: int) -> float:
        """Return the weight of a call; the first call has number 0 and is never free."""
        return self.at_step(call // self.accumulate)

    def at_step(self, step: int) -> float:
        """Return the weight of a step of the optimiser, from 0."""
        warm = min(1.0, (step + 1) / self.warmup) if self.warmup else 1.0
        shaped = self.factor(step) if self.factor is not None else 1.0
        return checked(self.weight * warm * shaped)


def checked(weight: Any) -> float:
    """Return a weight that a loss can be multiplied by, or refuse it."""
    if isinstance(weight, str) or weight is None or not isfinite(weight):
        raise ConfigError(
            f"expected a finite number as the weight of a penalty, got {weight!r}",
            hint="give a number; 0 turns the penalty off, below 0 it asks for less isotropy",
            slug="penalty-weight",
        )
    return float(weight)


def _checked_steps(steps: Any) -> None:
    if not isinstance(steps, int) or steps < 1:
        raise ConfigError(
            f"expected a whole number of 1 or more as steps of a schedule, got {steps!r}",
            hint="give the steps of the optimiser over which the weight falls",
            slug="penalty-steps",
        )


@dataclass(frozen=True)
class linear:  # noqa: N801 - called like a function, and a class so that it can be pickled
    """Fall from 1 to 0 in a straight line over so many steps, and stay there."""

    steps: int

    def __post_init__(self) -> None:
        _checked_steps(self.steps)

    def __call__(self, step: int) -> float:
        """Return what the weight is multiplied by."""
        return max(0.0, 1.0 - step / self.steps)


@dataclass(frozen=True)
class cosine:  # noqa: N801
    """Fall from 1 to 0 along half a cosine over so many steps, and stay there."""

    steps: int

    def __post_init__(self) -> None:
        _checked_steps(self.steps)

    def __call__(self, step: int) -> float:
        """Return what the weight is multiplied by."""
        return (1.0 + cos(pi * min(step / self.steps, 1.0))) / 2.0

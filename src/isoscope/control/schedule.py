"""How strong a penalty is at each step: warm-up, then a constant or falling weight."""

from collections.abc import Callable
from dataclasses import dataclass
from math import cos, isfinite, pi

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
        step = call // self.accumulate
        warm = min(1.0, (step + 1) / self.warmup) if self.warmup else 1.0
        shaped = self.factor(step) if self.factor is not None else 1.0
        return checked(self.weight * warm * shaped)


def checked(weight: float) -> float:
    """Return a weight that a loss can be multiplied by, or refuse it."""
    if not isfinite(weight):
        raise ConfigError(
            f"expected a finite number as the weight of a penalty, got {weight}",
            hint="give a number; 0 turns the penalty off, below 0 it asks for less isotropy",
            slug="penalty-weight",
        )
    return float(weight)


def linear(steps: int) -> Factor:
    """Fall from 1 to 0 in a straight line over so many steps, and stay there."""
    return lambda step: max(0.0, 1.0 - step / steps)


def cosine(steps: int) -> Factor:
    """Fall from 1 to 0 along half a cosine over so many steps, and stay there."""
    return lambda step: (1.0 + cos(pi * min(step / steps, 1.0))) / 2.0

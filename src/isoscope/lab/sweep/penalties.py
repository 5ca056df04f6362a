"""The penalties a sweep can try, by the names of the command line."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import nn

from isoscope.control import CosReg, DebiasedIsotropy, IStar, MeanCosine, Penalty, penalised
from isoscope.control.penalty.penalty import Options, check_weight
from isoscope.control.penalty.row_selection import Layers
from isoscope.errors import ConfigError
from isoscope.registry import Registry, unknown

STREAMED = "streamed"  # a matrix of many tokens, found before each epoch as published
TOWARDS = ("scaled", "running", STREAMED, "identity")


@dataclass(frozen=True, slots=True)
class Choice:
    """A penalty without its weight."""

    name: str = "istar"
    zeta: float = 0.2
    towards: str = "scaled"
    layers: Layers | None = None  # the penalty's own default
    rows: int | None = 2048
    per_layer: bool | None = None
    as_published: bool = False

    def at(self, weight: float, seed: int) -> Penalty:
        """Return the penalty at a weight; it draws its rows by the seed."""
        return PENALTIES[self.name](self, weight, seed)


def _options(choice: Choice, seed: int) -> Options:
    return Options(
        layers=choice.layers, rows=choice.rows, per_layer=choice.per_layer, seed=seed
    )


def _istar(choice: Choice, weight: float, seed: int) -> Penalty:
    towards = "scaled" if choice.towards == STREAMED else choice.towards
    return IStar(weight, choice.zeta, towards=towards, **_options(choice, seed))


def _debiased(choice: Choice, weight: float, seed: int) -> Penalty:
    return DebiasedIsotropy(weight, **_options(choice, seed))


def _cosreg(choice: Choice, weight: float, seed: int) -> Penalty:
    return CosReg(weight, as_published=choice.as_published, **_options(choice, seed))


def _mean_cosine(choice: Choice, weight: float, seed: int) -> Penalty:
    return MeanCosine(weight, **_options(choice, seed))


def check_layers(choice: Choice, body: nn.Module) -> None:
    """Refuse layers that a model does not have, before anything is trained."""
    penalised(body, choice.at(1.0, 0))


PENALTIES: Registry[Callable[[Choice, float, int], Penalty]] = Registry("penalty")
PENALTIES.add("istar", _istar)
PENALTIES.add("debiased", _debiased)
PENALTIES.add("cosreg", _cosreg)
PENALTIES.add("mean-cosine", _mean_cosine)


def checked_weights(weights: Sequence[float | str]) -> tuple[float, ...]:
    """Return weights from small to large, each once, and 0 always among them."""
    found = {0.0}
    for each in weights:
        try:
            found.add(check_weight(float(each)) + 0.0)
        except (TypeError, ValueError):
            raise ConfigError(
                f"expected numbers as weights, got {each!r}",
                hint="separate them by commas: --weights=-3,0,3",
                slug="penalty-weight",
            ) from None
    if found == {0.0}:
        raise ConfigError(
            "a sweep needs at least 1 weight besides 0, got none",
            hint="weight 0 is what the others are compared with: --weights=-3,3",
            slug="penalty-weight",
        )
    return tuple(sorted(found, key=lambda weight: (weight, math.copysign(1, weight))))


def checked_choice(
    name: str,
    *,
    zeta: float = 0.2,
    towards: str = "scaled",
    layers: Layers | None = None,
    rows: int | None = 2048,
    per_layer: bool = False,
    as_published: bool = False,
) -> Choice:
    """Return a penalty by its name, once its options fit together."""
    _ = PENALTIES[name]
    if towards not in TOWARDS:
        raise unknown("shrinkage", towards, TOWARDS)
    if towards != "scaled" and name != "istar":
        raise ConfigError(
            f"cannot shrink the covariance of {name} towards {towards!r}",
            hint="--towards is for --penalty istar",
            slug="shrinkage-matrix",
        )
    if as_published and name != "cosreg":
        raise ConfigError(
            f"expected cosreg with --as-published, got {name}",
            hint="leave it out; istar shrinks as published with --towards streamed",
            slug="penalty-published",
        )
    if layers is not None and not isinstance(layers, str | int):
        layers = tuple(layers)
        if not layers:
            raise ConfigError(
                "expected at least 1 layer for a penalty, got none",
                hint="layers count from 0; leave them out for those the penalty takes itself",
                slug="penalty-layers",
            )
    return Choice(name, zeta, towards, layers, rows, per_layer or None, as_published)

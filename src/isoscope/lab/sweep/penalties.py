"""The penalties a sweep can try, by the names of the command line."""

import math
from collections.abc import Sequence

from isoscope.control import CosReg, DebiasedIsotropy, IStar, MeanCosine, Penalty
from isoscope.control.penalty.penalty import Options, check_weight
from isoscope.control.penalty.row_selection import Layers
from isoscope.dataclass import dataclass
from isoscope.errors import ConfigError
from isoscope.registry import check_names

STREAMED = "streamed"  # a matrix of many tokens, found before each epoch as published
PENALTIES: dict[str, type[IStar | DebiasedIsotropy | CosReg | MeanCosine]] = {
    "istar": IStar,
    "debiased": DebiasedIsotropy,
    "cosreg": CosReg,
    "mean-cosine": MeanCosine,
}
TOWARDS = ("scaled", "running", STREAMED, "identity")


@dataclass(frozen=True, slots=True)
class Choice:
    """A penalty without its weight, whose options fit together."""

    name: str = "istar"
    zeta: float = 0.2
    towards: str = "scaled"
    layers: Layers | None = None  # the penalty's own default
    rows: int | None = 2048
    per_layer: bool | None = None
    as_published: bool = False

    def __post_init__(self) -> None:
        check_names("penalty", [self.name], PENALTIES)
        check_names("shrinkage", [self.towards], TOWARDS)
        if self.towards != "scaled" and self.name != "istar":
            raise ConfigError(
                f"cannot shrink the covariance of {self.name} towards {self.towards!r}",
                hint="--towards is for --penalty istar",
                slug="shrinkage-matrix",
            )
        if self.as_published and self.name != "cosreg":
            raise ConfigError(
                f"expected cosreg with --as-published, got {self.name}",
                hint="leave it out; istar shrinks as published with --towards streamed",
                slug="penalty-published",
            )
        if self.layers is not None and not isinstance(self.layers, int) and not self.layers:
            raise ConfigError(
                "expected at least 1 layer for a penalty, got none",
                hint="layers count from 0; leave them out for those the penalty takes itself",
                slug="penalty-layers",
            )

    def at(self, weight: float, seed: int) -> Penalty:
        """Return the penalty at a weight; it draws its rows by the seed."""
        options = Options(
            layers=self.layers, rows=self.rows, per_layer=self.per_layer, seed=seed
        )
        if self.name == "istar":
            towards = "scaled" if self.towards == STREAMED else self.towards
            return IStar(weight, self.zeta, towards=towards, **options)
        if self.name == "cosreg":
            return CosReg(weight, as_published=self.as_published, **options)
        return PENALTIES[self.name](weight, **options)


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

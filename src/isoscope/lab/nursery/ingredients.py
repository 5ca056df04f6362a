"""The factors of an ablation: what each changes in a training, and its levels.

The second of two levels is the one a factor is named after: an effect is with the ingredient
minus without it.
"""

from collections.abc import Mapping, Sequence
from itertools import product

from msgspec.structs import replace

from isoscope.errors import ConfigError
from isoscope.lab.nursery.effects import Cell, Factor
from isoscope.lab.nursery.spec import Shape, Switches, Training, TrainSpec
from isoscope.registry import check_names

LEVELS: dict[str, tuple[str, ...]] = {
    "tie": ("untied", "tied"),
    "norm": ("pre", "post"),
    "attention": ("convolution", "attention"),
    "frequency": ("uniform", "zipf"),
    "rms": ("layer", "rms"),
    "final-bias": ("without", "with"),
    "objective": ("causal", "masked"),
    "width": ("16", "32", "64", "128"),
}
# What a factor that is not varied is set to.
USUAL = {
    "tie": "untied",
    "norm": "pre",
    "attention": "attention",
    "frequency": "zipf",
    "rms": "layer",
    "final-bias": "with",
    "objective": "causal",
}
SIZES = ("width",)  # factors that change the number of parameters by themselves


def read_factors(words: Sequence[str]) -> list[Factor]:
    """Return the factors that words name: `tie`, or with levels `width=32:64:128`."""
    found: list[Factor] = []
    for word in words:
        name, given, rest = word.partition("=")
        check_names("factor", [name], LEVELS)
        levels = tuple(part for part in rest.split(":") if part) if given else LEVELS[name]
        if name in SIZES:
            _check_sizes(name, levels)
        else:
            check_names("level", levels, LEVELS[name])
            levels = tuple(level for level in LEVELS[name] if level in levels)
        if len(set(levels)) < 2:
            raise ConfigError(
                f"a factor needs at least 2 levels, got {len(set(levels))} of {name}",
                hint=f"leave out the levels for all of them: {':'.join(LEVELS[name])}",
                slug="nursery-levels",
            )
        if name in [each.name for each in found]:
            raise ConfigError(
                f"expected each factor once, got {name} twice",
                hint="separate factors by commas, and levels by colons: width=32:64",
                slug="nursery-levels",
            )
        found.append(Factor(name, levels))
    if not found:
        raise ConfigError(
            "an ablation needs at least 1 factor, got none",
            hint=f"choose from {', '.join(LEVELS)}",
            slug="nursery-levels",
        )
    return found


def _check_sizes(name: str, levels: Sequence[str]) -> None:
    for level in levels:
        if not level.isdigit() or int(level) < 2:
            raise ConfigError(
                f"expected whole numbers of 2 or more as levels of {name}, got {level!r}",
                hint=f"separate them by colons: {name}=32:64:128",
                slug="nursery-levels",
            )


def cells_of(factors: Sequence[Factor]) -> list[Cell]:
    """Return all cells, the last factor changing fastest."""
    return list(product(*(factor.levels for factor in factors)))


def training_of(
    levels: Mapping[str, str], shape: Shape, train: Training, seed: int
) -> TrainSpec:
    """Return the training of one cell from one seed; all but the factors is as usual."""
    chosen = USUAL | dict(levels)
    width = int(chosen.get("width", shape.width))
    heads = shape.heads if width == shape.width else None
    return TrainSpec(
        language="zipf" if chosen["frequency"] == "zipf" else "uniform",
        switches=Switches(
            tied=chosen["tie"] == "tied",
            norm_place="post" if chosen["norm"] == "post" else "pre",
            norm_kind="rms" if chosen["rms"] == "rms" else "layer",
            no_final_bias=chosen["final-bias"] == "without",
            mixer="attention" if chosen["attention"] == "attention" else "convolution",
            objective="masked" if chosen["objective"] == "masked" else "causal",
            residual="sequential",  # for both places of norms
        ),
        shape=replace(shape, width=width, heads=heads),
        train=replace(train, seed=seed),
    )


def label_of(factors: Sequence[Factor], cell: Cell) -> str:
    """Return the name of a cell.

    >>> label_of([Factor("tie", ("untied", "tied")), Factor("width", ("32", "64"))],
    ...          ("tied", "32"))
    'tie=tied,width=32'
    """
    return ",".join(f"{f.name}={level}" for f, level in zip(factors, cell, strict=True))

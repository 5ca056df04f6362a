"""Engines by name, with the options that each of them takes."""

import os
from typing import cast

from isoscope.dataclass import dataclass
from isoscope.engine.base import Engine, Here
from isoscope.errors import ConfigError
from isoscope.registry import check_names

ENGINES = ("here", "pool", "ray", "torchrun")
# The options that only some engines have a use for.
ONLY = {
    "address": ("ray",),
    "gpus_per_worker": ("ray",),
    "memory_per_worker": ("ray",),
}


@dataclass(frozen=True)
class Where:
    """Which engine, with how many workers, and where they are."""

    engine: str = "here"
    workers: int = 1
    address: str | None = None
    gpus_per_worker: float = 0.0
    memory_per_worker: float = 0.0  # GB


def engine_for(where: Where) -> Engine:
    """Return the engine that was asked for; options that it has no use for are refused."""
    name, workers = where.engine, where.workers
    check_names("engine", [name], ENGINES)
    if type(workers) is not int or workers < 1:
        raise ConfigError(
            f"expected at least 1 as workers, got {workers!r}",
            hint="give a whole number to --workers",
            slug="number-too-small",
        )
    for option, engines in ONLY.items():
        if cast(object, getattr(where, option)) and name not in engines:
            raise ConfigError(
                f"cannot use {option.replace('_', ' ')} with the engine {name}",
                hint=f"it is for --engine={' or '.join(engines)}",
                slug="engine-option",
            )
    if name == "here":
        if workers != 1:
            raise ConfigError(
                f"cannot use {workers} workers with the engine here",
                hint="one process does the work there; several need --engine=pool",
                slug="engine-workers",
            )
        return Here()
    if name == "pool":
        from isoscope.engine.pool import Pool

        return Pool(workers)
    if name == "ray":
        from isoscope.engine.ray import Ray

        return Ray(workers, where.address, where.gpus_per_worker, where.memory_per_worker)
    from isoscope.engine.torchrun import Torchrun

    return Torchrun.from_environment(workers)


def is_leader(engine: object) -> bool:
    """Whether this process is the one that says what was found, of those that work alike."""
    if engine != "torchrun":
        return True
    from isoscope.engine.torchrun import Ranks

    ranks = Ranks.of(os.environ)
    return ranks is None or ranks.rank == 0

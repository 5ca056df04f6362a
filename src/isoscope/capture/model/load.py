"""Loading a model, wherever it is, into what a survey needs."""

import os
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from isoscope.errors import IsoscopeError

if TYPE_CHECKING:
    from isoscope.capture.model.loaded import Loaded

NEEDED = ("torch", "transformers", "accelerate")


def load(
    where: str | os.PathLike[str],
    *,
    dtype: str | None = None,
    device: str = "cpu",
    device_map: str | None = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
    untrained: bool = False,
    seed: int = 0,
    say: Callable[[str], None] | None = None,
) -> "Loaded":
    """Return a model from a folder, a GGUF file, or a name of the hub with `@revision`.

    Nothing is downloaded unless a name was given that is not a path, and then it is said
    first. `untrained` builds the same configuration with random weights.
    """
    need(NEEDED)
    from isoscope.capture.model.assemble import Order, assembled
    from isoscope.capture.model.network import Where
    from isoscope.capture.model.place import place_of
    from isoscope.capture.model.precision import device_named, dtype_named

    spot = Where(dtype_named(dtype), device_named(device), device_map)
    tell = _nothing if say is None else say
    place = place_of(
        where, revision=revision, code=trust_remote_code, weights=not untrained, say=tell
    )
    order = Order(spot, trust_remote_code, seed if untrained else None)
    if place.gguf is None:
        return assembled(place, order, tell)
    need(("gguf",))
    from isoscope.capture.model.once import parsed_once

    with parsed_once():
        return assembled(place, order, tell)


def need(packages: tuple[str, ...]) -> None:
    """Raise, with what to install, if one of the packages for models is missing."""
    for package in packages:
        try:
            import_module(package)
        except ImportError as error:
            raise IsoscopeError(
                f"loading a model needs the package {package}, got none ({error})",
                hint="pip install 'isoscope[hf]'",
                slug="model-packages",
            ) from error


def _nothing(_: str) -> None:
    return None

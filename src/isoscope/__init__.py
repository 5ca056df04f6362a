"""Measure, explain and control the anisotropy of Transformer representations."""

from collections.abc import Callable
from importlib import import_module

from isoscope.auto_classes import install

install()
del install


def __getattr__(name: str) -> Callable[..., object] | list[str]:
    """Import a public function on first use: `import isoscope` costs next to nothing."""
    if name == "__all__":
        return __dir__()
    if not name.startswith("_") and name in __dir__():
        globals()[name] = function = getattr(import_module("isoscope.api"), name)
        return function
    raise AttributeError(f"module 'isoscope' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(import_module("isoscope.api").PUBLIC)

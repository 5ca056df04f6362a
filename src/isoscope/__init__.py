"""Measure, explain and control the anisotropy of Transformer representations."""

# The names come from `__getattr__`:
# pyright: reportUnsupportedDunderAll=false

from collections.abc import Callable

__all__ = [
    "check",
    "compare",
    "dimensions",
    "explain",
    "figure",
    "load",
    "matrices",
    "measure",
    "merge",
    "norm",
    "probe",
    "read",
    "report",
    "survey",
    "survey_module",
    "sweep",
    "zero",
]


def __getattr__(name: str) -> Callable[..., object]:
    """Import a public function on first use: `import isoscope` costs next to nothing."""
    if name in __all__:
        from isoscope import api

        globals()[name] = function = getattr(api, name)
        return function
    raise AttributeError(f"module 'isoscope' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)

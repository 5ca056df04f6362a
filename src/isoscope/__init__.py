"""Measure, explain and control the anisotropy of Transformer representations."""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isoscope.verbs import (
        check,
        compare,
        dimensions,
        explain,
        figure,
        load,
        matrices,
        measure,
        merge,
        norm,
        probe,
        read,
        report,
        survey,
        survey_module,
        sweep,
        zero,
    )

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


def __getattr__(name: str) -> Any:  # lazily, so that `import isoscope` costs next to nothing
    if name in __all__:
        from isoscope import verbs

        return getattr(verbs, name)
    raise AttributeError(f"module 'isoscope' has no attribute {name!r}")


def _verb(name: str) -> property:
    """Return a property that stays the verb although a folder bears the same name.

    Importing the folder makes Python set it as an attribute of the package; the verb is
    what people mean by `isoscope.measure`, and `from isoscope.measure import ...` still
    finds the folder.
    """

    def verb(_package: ModuleType) -> Callable[..., Any]:
        return __getattr__(name)

    def keep(_package: ModuleType, _folder: ModuleType) -> None:
        """Leave the verb in its place."""

    return property(verb, keep)


class _Front(ModuleType):
    explain = _verb("explain")
    measure = _verb("measure")
    report = _verb("report")
    survey = _verb("survey")


sys.modules[__name__].__class__ = _Front

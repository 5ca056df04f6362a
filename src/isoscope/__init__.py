"""Measure, explain and control the anisotropy of Transformer representations."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isoscope.store import load
    from isoscope.verbs import measure, merge, read

__all__ = ["load", "measure", "merge", "read"]


def __getattr__(name: str) -> Any:  # so that `import isoscope` costs next to nothing
    if name == "load":
        from isoscope.store import load

        return load
    if name in __all__:
        from isoscope import verbs

        return getattr(verbs, name)
    raise AttributeError(f"module 'isoscope' has no attribute {name!r}")

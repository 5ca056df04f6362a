"""The papers' experiments, each a short composition of what the other folders have."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isoscope.lab.dimensions.outliers import rogue_dimensions
    from isoscope.lab.matrices.worker import matrix_isotropy
    from isoscope.lab.norm.final_norm import final_norms
    from isoscope.lab.norm.outliers import outlying_parameters
    from isoscope.lab.norm.steps import through_norm
    from isoscope.lab.probe.one_dimension import best_dimension
    from isoscope.lab.probe.sentence_states import states_of
    from isoscope.lab.zero.worker import zeroed_kl

_WHERE = {
    "best_dimension": "probe.one_dimension",
    "final_norms": "norm.final_norm",
    "matrix_isotropy": "matrices.worker",
    "outlying_parameters": "norm.outliers",
    "rogue_dimensions": "dimensions.outliers",
    "states_of": "probe.sentence_states",
    "through_norm": "norm.steps",
    "zeroed_kl": "zero.worker",
}
__all__ = [
    "best_dimension",
    "final_norms",
    "matrix_isotropy",
    "outlying_parameters",
    "rogue_dimensions",
    "states_of",
    "through_norm",
    "zeroed_kl",
]


def __getattr__(name: str) -> Any:  # lazily: what reads run folders needs no torch
    if name not in _WHERE:
        raise AttributeError(f"module 'isoscope.lab' has no attribute {name!r}")
    return getattr(import_module(f"isoscope.lab.{_WHERE[name]}"), name)

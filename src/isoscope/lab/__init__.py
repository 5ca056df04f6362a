"""The papers' experiments, each a short composition of what the other folders have."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isoscope.lab.embedding_matrices import matrix_isotropy
    from isoscope.lab.final_norm import final_norms
    from isoscope.lab.norm_outliers import outlying_parameters
    from isoscope.lab.norm_steps import through_norm
    from isoscope.lab.one_dimension import best_dimension
    from isoscope.lab.outlier_dimensions import rogue_dimensions
    from isoscope.lab.sentence_states import states_of
    from isoscope.lab.zeroed import zeroed_kl

_WHERE = {
    "best_dimension": "one_dimension",
    "final_norms": "final_norm",
    "matrix_isotropy": "embedding_matrices",
    "outlying_parameters": "norm_outliers",
    "rogue_dimensions": "outlier_dimensions",
    "states_of": "sentence_states",
    "through_norm": "norm_steps",
    "zeroed_kl": "zeroed",
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

"""The public functions: each builds a spec or opens runs, and returns results.

Those of experiments (`measure`, `survey`, `sweep`, …) are derived from their specs on first
use: an experiment that is registered has its function here.
"""

from collections.abc import Callable

from isoscope.comparison.check import check
from isoscope.comparison.compare import compare
from isoscope.exhibit.demo import demo
from isoscope.exhibit.render import figure, load, report
from isoscope.study.experiment import BUILT_IN, find_experiment
from isoscope.study.keywords import function_of
from isoscope.study.saved_runs import merge as merge
from isoscope.study.saved_runs import read as read
from isoscope.study.spec import EngineOptions
from isoscope.study.torch_module import ModuleSpec

__all__ = [
    "check",
    "compare",
    "demo",
    "figure",
    "load",
    "merge",
    "read",
    "report",
    "survey_module",
]
survey_module = function_of(ModuleSpec, EngineOptions)
survey_module.__module__ = __name__  # where pickle finds it
EXPERIMENTS = {name.replace("-", "_"): name for name in BUILT_IN}  # by the name in Python
PUBLIC = sorted({*__all__, *EXPERIMENTS} - {"demo"})  # what the package itself lists


def __getattr__(name: str) -> Callable[..., object]:
    """Return the function of an experiment."""
    if name not in EXPERIMENTS:
        raise AttributeError(f"module 'isoscope.api' has no attribute {name!r}")
    globals()[name] = function = find_experiment(EXPERIMENTS[name]).function
    function.__module__ = __name__  # where pickle finds it
    return function

"""The public functions: each builds a spec or opens runs, and returns results.

Each is imported on first use, with what it needs and no more. Those of experiments
(`measure`, `survey`, `sweep`, …) are derived from their specs: an experiment that is registered
has its function here.
"""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from isoscope.study.experiment import BUILT_IN, find_experiment, python_name

if TYPE_CHECKING:
    from isoscope.comparison.check import check
    from isoscope.comparison.compare import compare
    from isoscope.exhibit.demo import demo
    from isoscope.exhibit.render import figure, load, report
    from isoscope.study.saved_runs import merge, read
    from isoscope.study.torch_module import survey_module

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
WHERE = {
    "check": "isoscope.comparison.check",
    "compare": "isoscope.comparison.compare",
    "demo": "isoscope.exhibit.demo",
    "figure": "isoscope.exhibit.render",
    "load": "isoscope.exhibit.render",
    "merge": "isoscope.study.saved_runs",
    "read": "isoscope.study.saved_runs",
    "report": "isoscope.exhibit.render",
    "survey_module": "isoscope.study.torch_module",
}
EXPERIMENTS = {python_name(name): name for name in BUILT_IN}
PUBLIC = sorted({*WHERE, *EXPERIMENTS} - {"demo"})  # what the package itself lists


def __getattr__(name: str) -> Callable[..., object]:
    """Import a function, or return that of an experiment."""
    if name in WHERE:
        globals()[name] = function = getattr(import_module(WHERE[name]), name)
        return function
    if name not in EXPERIMENTS:
        raise AttributeError(f"module 'isoscope.api' has no attribute {name!r}")
    globals()[name] = function = find_experiment(EXPERIMENTS[name]).function
    function.__module__ = __name__  # where pickle finds it
    return function

"""The public functions: each builds a spec or opens runs, and returns results.

Those of experiments (`sweep`, `explain`, …) are derived from their specs when they are asked
for: an experiment that is registered has its function here.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from isoscope.comparison.check import check
from isoscope.comparison.compare import compare
from isoscope.exhibit.demo import demo
from isoscope.exhibit.render import figure, load, report
from isoscope.study.experiment import BUILT_IN, find_experiment
from isoscope.study.keywords import call, keywords
from isoscope.study.module import ModuleSpec
from isoscope.study.rows import MeasureSpec
from isoscope.study.runs import merge as merge
from isoscope.study.runs import read as read
from isoscope.study.spec import EngineOptions
from isoscope.study.survey import SurveySpec

if TYPE_CHECKING:
    from isoscope.display import Results
    from isoscope.types import Reading

__all__ = [
    "check",
    "compare",
    "demo",
    "figure",
    "load",
    "measure",
    "merge",
    "read",
    "report",
    "survey",
    "survey_module",
]
EXPERIMENTS = {name.replace("-", "_"): name for name in BUILT_IN}  # by the name in Python
PUBLIC = sorted({*__all__, *EXPERIMENTS} - {"demo"})  # what the package itself lists


def __getattr__(name: str) -> Callable[..., object]:
    """Return the function of an experiment."""
    if name not in EXPERIMENTS:
        raise AttributeError(f"module 'isoscope.api' has no attribute {name!r}")
    globals()[name] = function = find_experiment(EXPERIMENTS[name]).function
    return function


@keywords(MeasureSpec)
def measure(*arguments: object, **options: object) -> "Results[Reading]":
    """Measure a collection of vectors: an array, a tensor, a column of a frame, or a path.

    Returns readings, each with a 95 % interval and its warnings. With `output` a run folder
    is written as well; an unfinished one is resumed. `document` says which document each
    row is from: a column of the file, or a sequence with one entry per row.
    """
    return call(MeasureSpec, arguments, options)


@keywords(SurveySpec)
def survey(*arguments: object, **options: object) -> "Results[Reading]":
    """Run a model over a corpus and read every site; activations are never kept.

    With `output` a run folder is written; an unfinished one with the same options is
    resumed.
    """
    return call(SurveySpec, arguments, options)


@keywords(ModuleSpec, EngineOptions)
def survey_module(*arguments: object, **options: object) -> "Results[Reading]":
    """Measure any module at the modules named in `taps`, over batches of your own.

    A batch is what the module is called with (a tensor, a tuple or a dictionary), or a pair
    of that and a boolean mask (documents, positions). Each entry of a batch is a document.
    Measures that need a second pass are read off the sample.
    """
    return call(ModuleSpec, arguments, options, EngineOptions)

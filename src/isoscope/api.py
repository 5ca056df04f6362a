"""The public functions: each builds a spec or opens runs, and returns results."""

from typing import TYPE_CHECKING, Any

from isoscope.comparison.check import check
from isoscope.comparison.compare import compare
from isoscope.exhibit.demo import demo
from isoscope.exhibit.render import figure, load, report
from isoscope.lab.dimensions.results import dimensions
from isoscope.lab.explain.results import explain
from isoscope.lab.matrices.results import matrices
from isoscope.lab.norm.results import norm
from isoscope.lab.probe.results import probe
from isoscope.lab.sweep.spec import SweepSpec
from isoscope.lab.zero.results import zero
from isoscope.study.execution import Place
from isoscope.study.keywords import call, keywords
from isoscope.study.module import ModuleSpec
from isoscope.study.rows import MeasureSpec
from isoscope.study.runs import merge, read
from isoscope.study.survey import SurveySpec

if TYPE_CHECKING:
    from isoscope.display import Results
    from isoscope.lab.sweep.summary import Line
    from isoscope.types import Reading

__all__ = [
    "check",
    "compare",
    "demo",
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


@keywords(MeasureSpec)
def measure(*arguments: Any, **options: Any) -> "Results[Reading]":
    """Measure a collection of vectors: an array, a tensor, a column of a frame, or a path.

    Returns readings, each with a 95 % interval and its warnings. With `output` a run folder
    is written as well; an unfinished one is resumed. `document` says which document each
    row is from: a column of the file, or a sequence with one entry per row.
    """
    return call(MeasureSpec, arguments, options)


@keywords(SurveySpec)
def survey(*arguments: Any, **options: Any) -> "Results[Reading]":
    """Run a model over a corpus and read every site; activations are never kept.

    With `output` a run folder is written; an unfinished one with the same options is
    resumed.
    """
    return call(SurveySpec, arguments, options)


@keywords(ModuleSpec, Place)
def survey_module(*arguments: Any, **options: Any) -> "Results[Reading]":
    """Measure any module at the modules named in `taps`, over batches of your own.

    A batch is what the module is called with (a tensor, a tuple or a dictionary), or a pair
    of that and a boolean mask (documents, positions). Each entry of a batch is a document.
    Measures that need a second pass are read off the sample.
    """
    return call(ModuleSpec, arguments, options, Place)


@keywords(SweepSpec)
def sweep(*arguments: Any, **options: Any) -> "Results[Line]":
    """Fine-tune a model on a task with a penalty, once for each weight and seed.

    Weight 0 is always among them, and what the others are compared with, seed by seed. With
    `output` a run folder is written; an unfinished one with the same options is resumed.
    Held-out examples are those of `test`, or a share of `data`.
    """
    return call(SweepSpec, arguments, options)

"""The public functions: each builds a spec or opens runs, and returns results.

`isoscope.__all__` lists them; here they are defined, or taken from where they live.
"""

from typing import TYPE_CHECKING

from isoscope.comparison.check import check as check
from isoscope.comparison.compare import compare as compare
from isoscope.exhibit.demo import demo as demo
from isoscope.exhibit.render import figure as figure
from isoscope.exhibit.render import load as load
from isoscope.exhibit.render import report as report
from isoscope.lab.dimensions.results import dimensions as dimensions
from isoscope.lab.explain.results import explain as explain
from isoscope.lab.matrices.results import matrices as matrices
from isoscope.lab.norm.results import norm as norm
from isoscope.lab.probe.results import probe as probe
from isoscope.lab.sweep.spec import SweepSpec
from isoscope.lab.zero.results import zero as zero
from isoscope.study.keywords import call, keywords
from isoscope.study.module import ModuleSpec
from isoscope.study.rows import MeasureSpec
from isoscope.study.runs import merge as merge
from isoscope.study.runs import read as read
from isoscope.study.spec import EngineOptions
from isoscope.study.survey import SurveySpec

if TYPE_CHECKING:
    from isoscope.display import Results
    from isoscope.lab.sweep.summary import Line
    from isoscope.types import Reading


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


@keywords(SweepSpec)
def sweep(*arguments: object, **options: object) -> "Results[Line]":
    """Fine-tune a model on a task with a penalty, once for each weight and seed.

    Weight 0 is always among them, and what the others are compared with, seed by seed. With
    `output` a run folder is written; an unfinished one with the same options is resumed.
    Held-out examples are those of `test`, or a share of `data`.
    """
    return call(SweepSpec, arguments, options)

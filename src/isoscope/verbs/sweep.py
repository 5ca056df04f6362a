"""The function of control: fine-tune with a penalty at several weights, and compare."""

from typing import TYPE_CHECKING, Any

from isoscope.lab.sweep.spec import SweepSpec
from isoscope.study.keywords import call, keywords

if TYPE_CHECKING:
    from isoscope.lab.sweep.summary import Line
    from isoscope.report import Results


@keywords(SweepSpec)
def sweep(*arguments: Any, **options: Any) -> "Results[Line]":
    """Fine-tune a model on a task with a penalty, once for each weight and seed.

    Weight 0 is always among them, and what the others are compared with, seed by seed. With
    `output` a run folder is written; an unfinished one with the same options is resumed.
    Held-out examples are those of `test`, or a share of `data`.
    """
    return call(SweepSpec, arguments, options)

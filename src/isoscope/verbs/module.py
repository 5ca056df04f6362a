"""The function for any torch module: sites by name, batches of the caller's own."""

from typing import TYPE_CHECKING, Any

from isoscope.study.execution import Place
from isoscope.study.keywords import call, keywords
from isoscope.study.module import ModuleSpec

if TYPE_CHECKING:
    from isoscope.report import Results
    from isoscope.types import Reading


@keywords(ModuleSpec, Place)
def survey_module(*arguments: Any, **options: Any) -> "Results[Reading]":
    """Measure any module at the modules named in `taps`, over batches of your own.

    A batch is what the module is called with (a tensor, a tuple or a dictionary), or a pair
    of that and a boolean mask (documents, positions). Each entry of a batch is a document.
    Measures that need a second pass are read off the sample.
    """
    return call(ModuleSpec, arguments, options, Place)

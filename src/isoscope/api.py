"""The functions for models: survey their sites, or any module at taps, and list the sites."""

import os
from typing import TYPE_CHECKING, Any

from isoscope.study.execution import Place
from isoscope.study.keywords import call, keywords
from isoscope.study.module import ModuleSpec
from isoscope.study.survey import SurveySpec

if TYPE_CHECKING:
    from isoscope.capture.model.loaded import Loaded
    from isoscope.report import Results
    from isoscope.types import Reading


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


def sites(model: str | os.PathLike[str], **options: Any) -> list[tuple[str, int, int]]:
    """Return the sites of a model as (family, how many, width)."""
    from isoscope.study.model import load_model

    found = load_model(model, **options)
    from isoscope.capture.sites import outline

    rows = outline(found.sites)
    if found.loaded.pooling is not None:
        rows.append(("pooled", 1, _pooled_width(found.loaded)))
    return rows


def _pooled_width(loaded: "Loaded") -> int:
    import torch

    from isoscope.capture.feed import sample_inputs
    from isoscope.capture.tap import first_tensor

    with torch.inference_mode():
        states = first_tensor(loaded.body(**sample_inputs(loaded)))
    assert states is not None and loaded.pooling is not None
    everywhere = torch.ones(states.shape[:2], dtype=torch.bool, device=states.device)
    return int(loaded.pooling.pooled(states, everywhere).shape[1])

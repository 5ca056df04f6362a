"""The model an experiment is about, with its sites."""

import os
from dataclasses import dataclass
from typing import Any

import torch

from isoscope.capture.feed import sample_inputs
from isoscope.capture.model.load import load
from isoscope.capture.model.loaded import Loaded
from isoscope.capture.sites import Sites
from isoscope.site import DECODER, Site


@dataclass(frozen=True)
class Subject:
    """A model that is loaded, and what there is to listen to in it."""

    loaded: Loaded
    sites: Sites

    @property
    def last(self) -> str:
        """The stack whose states become the output."""
        stacks = {Site.parse(name).stack for name in self.sites.names}
        return DECODER if DECODER in stacks else ""

    def site(self, family: str, part: str = "") -> str:
        """Return the name of a site in that stack: `embed`, or `norm` with its part."""
        return str(Site(family, part=part, stack=self.last))


def subject_of(model: Any, **given: Any) -> Subject:
    """Return a model ready for experiments: a folder, GGUF file, hub name, or loaded one.

    Anything that has `loaded` and `sites` is taken as it is, so that several experiments
    share one model. The rest goes to the loader: `dtype`, `device`, `untrained` …
    """
    if isinstance(model, Subject):
        return model
    if hasattr(model, "loaded") and hasattr(model, "sites"):
        return Subject(model.loaded, model.sites)
    loaded = model if isinstance(model, Loaded) else load(_path(model), **given)
    inputs = sample_inputs(loaded)

    def run() -> None:
        with torch.inference_mode():
            loaded.body(**inputs)

    return Subject(loaded, Sites.found(loaded.model, loaded.body, run))


def _path(model: Any) -> str | os.PathLike[str]:
    if isinstance(model, str | os.PathLike):
        return model
    raise TypeError(f"expected a path, a hub name or a loaded model, got {type(model)}")

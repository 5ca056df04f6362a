"""The geometry of held-out texts at every layer, and of all layers as one cloud."""

from collections.abc import Sequence
from math import inf

import torch
from torch import Tensor

from isoscope.accumulate.survey import Survey
from isoscope.capture.feed import Batch
from isoscope.capture.feed.base import Marks
from isoscope.dataclass import dataclass
from isoscope.site import is_layer
from isoscope.study.model import ModelSites
from isoscope.study.passes import ListenerOptions, SiteKinds, first_pass
from isoscope.study.reading import read_survey
from isoscope.types import Reading

MEASURES = ("isoscore-star", "isoscore-debiased", "isoscore", "mean-cosine", "twonn")
LAYERS = "resid"  # the site that is all layers as one cloud, as I-STAR takes them


@dataclass(frozen=True)
class Unmarked:
    """A batch without special tokens, for one layer or for several one after another."""

    batch: Batch
    layers: int = 1

    @property
    def documents(self) -> tuple[str, ...]:
        """The ids of its documents."""
        return self.batch.documents

    def marks(self, stack: str, length: int) -> Marks:
        """Return which positions are real; a penalty counts special tokens, so do we."""
        real = self.batch.marks(stack, length // self.layers).real
        real = real.repeat(1, self.layers)
        return Marks(real, torch.zeros_like(real), None)


def geometry(
    subject: ModelSites,
    batches: Sequence[Batch],
    *,
    zeta: float,
) -> list[Reading]:
    """Return readings of each layer and of all together, over all real tokens."""
    names = [name for name in subject.sites.names if is_layer(name)]
    survey = Survey()
    # Without sinks: rows are counted alike, however long.
    kinds, hearing = SiteKinds(MEASURES, causes=False), ListenerOptions(sinks=inf, seed=0)
    listener = first_pass(survey, kinds, hearing)
    same = len({subject.sites.widths[name] for name in names}) == 1 and len(names) > 1
    for batch in batches:
        states = _states(subject, names, batch)
        listener.begin(Unmarked(batch))
        with torch.inference_mode():
            for name in names:
                listener.hear(name, states[name])
            if same:
                listener.begin(Unmarked(batch, len(names)))
                listener.hear(LAYERS, torch.cat([states[name] for name in names], dim=1))
    found, _ = read_survey(
        survey, MEASURES, run="", zeta=zeta, as_published=False, documents=True
    )
    return [each for each in found if each.variant == "all"]


def _states(subject: ModelSites, names: Sequence[str], batch: Batch) -> dict[str, Tensor]:
    """Return copies of the states of layers: a model may go on to write into its own."""
    states: dict[str, Tensor] = {}

    def keep(site: str, tensor: Tensor) -> None:
        states[site] = tensor.clone()

    with subject.sites.listening(names, keep), torch.inference_mode():
        subject.loaded.body(**batch.inputs)
    return states

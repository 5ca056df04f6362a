"""One checkpoint of a series, surveyed: the same sums and merges as a survey of its own."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from isoscope.engine import Scratch, Ticks
from isoscope.errors import RowError
from isoscope.lab.trajectory.spec import TrajectoryPlan
from isoscope.site import Site
from isoscope.store.state import State
from isoscope.study.checkpoints import survey_stages
from isoscope.study.documents import Batches, SurveyPlan
from isoscope.study.series import Checkpoint, other_shape
from isoscope.study.survey import ModelWorker
from isoscope.types import Array


class CheckpointWorker(ModelWorker):
    """A checkpoint that is loaded, over documents that others have tokenised."""

    def check_like(self, plan: TrajectoryPlan, unit: Checkpoint) -> None:
        """Refuse a checkpoint of another model."""
        widths = self.subject.sites.widths
        for site in dict.fromkeys((*plan.widths, *widths)):
            ours, theirs = plan.widths.get(site), widths.get(site)
            if ours != theirs:
                self._check_finite()
                words = (f"{site} {_width(ours)}", _width(theirs))
                raise other_shape(plan.first, unit.name, *words)

    def _check_finite(self) -> None:
        """Refuse weights with NaN, of which no site can be found: training has diverged."""
        for name, weight in self.subject.loaded.body.named_parameters():
            if not bool(torch.isfinite(weight).all()):
                raise RowError(
                    f"{name} holds NaN or infinity",
                    hint="training has diverged: leave the checkpoint out",
                    slug="row-not-finite",
                )

    def survey(
        self, plan: SurveyPlan, scratch: Scratch, ticks: Ticks, id: str, spare: Path
    ) -> State:
        """Return the summaries of all stages, merged as those of a survey are."""
        return survey_stages(self, plan, scratch, ticks, id, spare)

    def in_draw_order(self, plan: SurveyPlan) -> Iterator[int]:
        """Yield the documents of a plan in the order in which they were drawn."""
        there = set(plan.ordinals.array.tolist())
        order = map(int, self.corpus.order(self.spec.draw.seed))
        return (ordinal for ordinal in order if ordinal in there)

    def sample_rows(self, plan: SurveyPlan, site: str, count: int) -> Array:
        """Return rows of a site, from as many documents as it takes; fewer where there are."""
        stack = Site.parse(site).stack
        heard: list[Tensor] = []
        found: list[Array] = []
        units = [unit for unit in plan.stages[0] if isinstance(unit, Batches)]
        batches = (batch for unit in units for batch in plan.batches(unit))
        with self.subject.sites.listening([site], lambda _, rows: heard.append(rows)) as calls:
            for ordinals in batches:
                documents = [
                    each for each in map(self.open_document, ordinals) if each is not None
                ]
                if not documents:
                    continue
                batch = self.feed.batch(documents)
                calls.restart()
                with torch.inference_mode():
                    self.subject.loaded.body(**batch.inputs)
                states = heard.pop()  # (documents, positions, d)
                real = batch.marks(stack, states.shape[1]).real
                found.append(states[real].float().cpu().numpy())
                heard.clear()
                if sum(map(len, found)) >= count:
                    break
        return np.concatenate(found)[:count] if found else np.zeros((0, 1))


def _width(width: int | None) -> str:
    return "missing" if width is None else f"of width {width}"

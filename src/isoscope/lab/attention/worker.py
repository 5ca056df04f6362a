"""The worker of `isoscope attention`: documents through a model whose heads are heard."""

import torch

from isoscope.accumulate.survey import Survey
from isoscope.capture.feed import sample_inputs
from isoscope.capture.head_sums import HeadSums
from isoscope.capture.heads import Heads
from isoscope.display import Results
from isoscope.engine import Notify, Scratch, Ticks
from isoscope.engine.allocator import trim
from isoscope.hashing import GROUPS
from isoscope.lab.attention.results import attention_results
from isoscope.lab.attention.spec import AttentionSpec
from isoscope.store.state import State
from isoscope.study.documents import (
    Batches,
    DocumentsWorker,
    KeptDocuments,
    SurveyPlan,
    cut_batches,
)
from isoscope.study.frequency import Frequencies
from isoscope.study.measure_choice import Computed, head_measures
from isoscope.study.run import Finished, Live, Planner
from isoscope.study.survey import TRIMMED
from isoscope.types import Reading

OF_STREAM = "mean-cosine"  # what is read of the stream beside its heads
OPTIONS: Computed = {"documents": True}  # intervals are over documents


class AttentionWorker(DocumentsWorker[AttentionSpec], Planner[Results[Reading]]):
    """A loaded model whose heads are known, and an open corpus."""

    def __init__(
        self,
        spec: AttentionSpec,
        notify: Notify,
        live: Live,
        kept: KeptDocuments | None = None,
    ) -> None:
        self.queries = spec.sample  # a wrong number, before a model is loaded
        super().__init__(spec, spec.load.one, notify, live, kept)
        loaded = self.subject.loaded
        inputs = sample_inputs(loaded)
        self.heads = Heads.discover(loaded.body, lambda: loaded.body(**inputs), loaded.name)

    def plan(self) -> SurveyPlan:
        """Draw documents, and cut the work into units."""
        selection = self.select(Frequencies())
        units = self.cut_units(selection)
        width = max(layer.width for layer in self.heads.layers)
        return self.make_plan(
            (tuple(cut_batches(units, 1)),),
            units,
            selection.items,
            self.describe_corpus(selection, width, self.heads.remarks),
            names=(*head_measures(), OF_STREAM),
            sites=tuple(site for layer in self.heads.layers for site in layer.sites),
        )

    def enter(self, plan: object, _stage: int, _before: State | None, /) -> None:
        """Take the plan."""
        assert isinstance(plan, SurveyPlan)
        self.planned = plan

    def run(self, unit: object, _scratch: Scratch, ticks: Ticks, /) -> Survey:
        """Run the documents of a unit; where memory ends, again in smaller batches."""
        assert isinstance(unit, Batches)
        return self.try_batches(self.planned, unit, self._run_batches, ticks)

    def _run_batches(self, batches: list[list[int]], ticks: Ticks) -> Survey:
        sums = HeadSums(
            queries=self.queries,
            times=self.spec.sinks,
            seed=self.spec.draw.seed,
            folded=(self.planned.drawn.documents or 0) > GROUPS,
        )
        body, done = self.subject.loaded.body, 0
        with self.heads.listening(sums.hear, sums.enter) as passes, torch.inference_mode():
            for number, batch in enumerate(batches, start=1):
                prepared = [e for e in map(self.open_document, batch) if e is not None]
                if not prepared:
                    continue
                fed = self.feed.batch(prepared)
                sums.begin(fed)
                passes.restart()
                body(**fed.inputs)
                sums.end()
                done += sum(each.length for each in prepared)
                ticks.at(done)
                if number % TRIMMED == 0:
                    trim()
        trim()
        return sums.finish()

    def finish(self, done: Finished) -> Results[Reading]:
        """Return the readings of all heads, and write the run where there is a target."""
        identity = self.subject.loaded.identity
        return attention_results(self.read_summaries(done, OPTIONS, {}, identity))

"""The worker of `isoscope attention`: documents through a model whose heads are heard."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from msgspec.structs import replace

from isoscope.accumulate.survey import Survey
from isoscope.capture.feed import Prepared, feed_for, sample_inputs
from isoscope.capture.head_sums import HeadSums
from isoscope.capture.heads import Heads
from isoscope.capture.runner import halve_where_memory_ends, threads
from isoscope.display import Results
from isoscope.engine import Notify, Scratch, Ticks
from isoscope.engine.allocator import trim
from isoscope.engine.plan import Packed
from isoscope.hashing import GROUPS
from isoscope.lab.attention.results import attention_results
from isoscope.lab.attention.spec import AttentionSpec
from isoscope.store import Origin, new_origin
from isoscope.store.origin import SourceRecord
from isoscope.store.state import State
from isoscope.study.checkpoints import KeptDocuments
from isoscope.study.frequency import Frequencies
from isoscope.study.measure_choice import head_measures
from isoscope.study.model import model_content, open_documents, open_model
from isoscope.study.rows import finish_readings
from isoscope.study.run import Finished, Live, Planner
from isoscope.study.selection import (
    Selection,
    prepare_document,
    schedule,
    select_documents,
)
from isoscope.study.survey import (
    TRIMMED,
    Batches,
    SurveyPlan,
    cut_batches,
)
from isoscope.types import Reading

if TYPE_CHECKING:
    from isoscope.capture.feed import Feed
    from isoscope.source.corpus.corpus import Corpus

OF_STREAM = "mean-cosine"  # what is read of the stream beside its heads


class AttentionWorker(Planner[Results[Reading]]):
    """A loaded model whose heads are known, and an open corpus."""

    def __init__(self, spec: AttentionSpec, notify: Notify, live: Live) -> None:
        self.spec = spec
        self.queries = spec.sample  # a wrong number, before a model is loaded
        self.subject = open_model(
            spec.load.one(),
            live=live.get("model"),
            device_map=spec.device_map,
            untrained=spec.untrained,
            seed=spec.draw.seed,
            say=notify.say,
        )
        loaded, read = self.subject.loaded, spec.read
        inputs = sample_inputs(loaded)
        self.heads = Heads.discover(loaded.body, lambda: loaded.body(**inputs), loaded.name)
        self.corpus: Corpus = open_documents(
            read,
            live.get("corpus"),
            target=read.target,
            id=read.id,
            per=read.per,
            kind=read.kind,
            skip_bad=read.skip_bad,
            length=spec.length,
        )
        self.feed: Feed = feed_for(
            loaded, length=spec.length, prompt=spec.prompt, bos=not spec.no_bos
        )
        self.prepared: dict[int, Prepared] = {}
        self.tokens = KeptDocuments()  # those that a series has tokenised

    def content(self) -> dict[str, str]:
        """Return fingerprints of the model and the corpus."""
        found = model_content(self.subject)
        found["corpus"] = f"{self.corpus.name} {self.corpus.fingerprint}"
        return found

    def plan(self) -> SurveyPlan:
        """Draw documents, and cut the work into units."""
        spec = self.spec
        selection = select_documents(
            self.corpus,
            self.feed,
            Frequencies(),
            seed=spec.draw.seed,
            tokens=spec.tokens,
            skip_bad=spec.read.skip_bad,
        )
        self.prepared = selection.prepared
        units = schedule(
            selection.items,
            unit_rows=spec.unit,
            documents=spec.batch,
            mixed=self.feed.mixes_lengths,
        )
        documents = [batch for unit in units for batch in unit]
        lengths = {item.ordinal: item.length for item in selection.items}
        ordinals = [ordinal for batch in documents for ordinal in batch]
        return SurveyPlan(
            stages=(tuple(cut_batches(units, 1)),),
            threads=spec.threads or torch.get_num_threads(),
            names=(*head_measures(), OF_STREAM),
            sites=tuple(site for layer in self.heads.layers for site in layer.sites),
            turns=1,
            ordinals=Packed.of(np.array(ordinals, dtype=np.int64)),
            lengths=Packed.of(np.array([lengths[each] for each in ordinals], dtype=np.int64)),
            starts=Packed.of(np.cumsum([0, *map(len, documents)], dtype=np.int64)),
            counts=Packed.of(np.zeros(0, dtype=np.int64)),
            drawn=self._describe_corpus(selection),
        )

    def _describe_corpus(self, selection: Selection) -> SourceRecord:
        corpus, identity = self.corpus, self.subject.loaded.identity
        return SourceRecord(
            name=corpus.name,
            fingerprint=corpus.fingerprint,
            rows=selection.rows,
            dtype=str(identity["dtype"]),
            width=max(layer.width for layer in self.heads.layers),
            file=Path(corpus.place).name if corpus.place else "",
            kind=corpus.kind,
            documents=len(selection.items),
            of=len(corpus),
            truncated=selection.truncated,
            warnings=(*corpus.warnings, *selection.warnings(), *self.heads.remarks),
        )

    def enter(self, plan: object, _stage: int, _before: State | None, /) -> None:
        """Take the plan."""
        assert isinstance(plan, SurveyPlan)
        self.planned = plan

    def run(self, unit: object, _scratch: Scratch, ticks: Ticks, /) -> Survey:
        """Run the documents of a unit; where memory ends, again in smaller batches."""
        assert isinstance(unit, Batches)

        def attempt(parts: list[list[int]]) -> Survey:
            with threads(self.planned.threads):
                return self._run_batches(parts, ticks)

        return halve_where_memory_ends(
            self.planned.batches(unit),
            attempt,
            ticks.note,
            f"a single document of at most {self.spec.length} tokens in "
            f"{self.subject.loaded.name}",
            "lower --length, or use --dtype=bfloat16",
        )

    def _run_batches(self, batches: list[list[int]], ticks: Ticks) -> Survey:
        sums = HeadSums(
            queries=self.queries,
            times=self.spec.sinks,
            seed=self.spec.draw.seed,
            folded=(self.planned.drawn.documents or 0) > GROUPS,
        )
        body, done = self.subject.loaded.body, 0
        for number, batch in enumerate(batches, start=1):
            prepared = [each for each in map(self._prepare, batch) if each is not None]
            if not prepared:
                continue
            fed = self.feed.batch(prepared)
            sums.begin(fed)
            with (
                self.heads.listening(sums.hear, sums.enter) as passes,
                torch.inference_mode(),
            ):
                passes.restart()
                body(**fed.inputs)
            done += sum(each.length for each in prepared)
            ticks.at(done)
            if number % TRIMMED == 0:
                trim()
        trim()
        return sums.finish()

    def _prepare(self, ordinal: int) -> Prepared | None:
        kept = self.tokens.get(ordinal) or self.prepared.get(ordinal)
        return prepare_document(self.corpus, self.feed, ordinal, kept)

    def finish(self, done: Finished) -> Results[Reading]:
        """Return the readings of all heads, and write the run where there is a target."""
        plan = done.plan_as(SurveyPlan)
        spec, drawn = self.spec, plan.drawn
        options = {"documents": True}
        remarks = (*drawn.warnings, *done.notes)

        def origin() -> Origin:
            settings = {
                **spec.settings(),
                **options,
                "measures": list(plan.names),
                "sites": list(plan.sites),
                "known_by": None if self.corpus.has_ids else "content",
            }
            return new_origin(
                sources=[replace(drawn, warnings=remarks, units=done.id)],
                settings=settings,
                seed=spec.draw.seed,
                kind="attention",
                model=self.subject.loaded.identity,
            )

        readings = finish_readings(
            done,
            plan.names,
            self.subject.loaded.name,
            options,
            origin,
            order=plan.sites,
            remarks=remarks,
            flags={"tokens": spec.tokens or drawn.rows, "threads": plan.threads},
        )
        return attention_results(readings)

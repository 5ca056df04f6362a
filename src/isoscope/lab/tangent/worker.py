"""The worker of `isoscope tangent`: a proxy of some documents, gradients of the others."""

from collections.abc import Sequence
from dataclasses import replace as dataclass_replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import asdict
from torch import Tensor

from isoscope.accumulate import (
    Concepts,
    Moments,
    Reservoir,
    Tally,
    Vocabulary,
    accumulator_of,
)
from isoscope.accumulate.survey import Kind, Survey, variants
from isoscope.blas import one_blas_thread
from isoscope.capture.backward import Backward, Ears, gradient_sites
from isoscope.capture.feed import Prepared, sample_inputs
from isoscope.capture.gradient_sums import GradientSums
from isoscope.capture.objective import LabelReader, Targets, open_objective
from isoscope.capture.runner import Runner, halve_where_memory_ends, threads
from isoscope.display import Results
from isoscope.engine import Notify, Scratch, Ticks
from isoscope.engine.allocator import trim
from isoscope.errors import RowError, TooFewRowsError
from isoscope.hashing import GROUPS, keyed_documents
from isoscope.lab.tangent.distance import read_distances, sampled_sites
from isoscope.lab.tangent.results import tangent_results
from isoscope.lab.tangent.spec import TangentPlan, TangentSpec
from isoscope.measures.proxy import Proxy, fit_pca, fit_semi_nmf
from isoscope.store.state import State
from isoscope.study.documents import Batches, DocumentsWorker, KeptDocuments, cut_batches
from isoscope.study.frequency import Frequencies
from isoscope.study.measure_choice import gradient_measures
from isoscope.study.passes import ListenerOptions, SiteKinds
from isoscope.study.run import Finished, Live, Planner
from isoscope.study.selection import Item, frequencies_for
from isoscope.study.survey import TRIMMED
from isoscope.types import Reading

if TYPE_CHECKING:
    from isoscope.capture.tensor_block import TensorBlock

DEFAULT = ("grad",)
WIDEST_APART = 1024  # beyond which no scatters of halves and bands: 56 matrices per site


class TangentWorker(DocumentsWorker[TangentSpec], Planner[Results[Reading]]):
    """A loaded model whose gradients can be heard, and an open corpus."""

    def __init__(
        self,
        spec: TangentSpec,
        notify: Notify,
        live: Live,
        kept: KeptDocuments | None = None,
        shared: dict[str, Proxy] | None = None,
    ) -> None:
        spec.check()
        super().__init__(spec, spec.load.one, notify, live, kept)
        loaded = self.subject.loaded
        inputs = sample_inputs(loaded)
        self.sites = gradient_sites(self.subject.sites, lambda: loaded.body(**inputs))
        self.labels = LabelReader(loaded) if spec.read.label is not None else None
        self.objective = open_objective(
            loaded, self.feed, spec.loss, seed=spec.draw.seed, labels=self.labels
        )
        self.chosen = self.sites.select(spec.sites or DEFAULT)
        self.shared = shared  # proxies of a whole series
        self.own: dict[str, Proxy] = {}  # of the activations of this model
        self.distances: tuple[Reading, ...] = ()  # of its tokens to their centroids

    def content(self) -> dict[str, str]:
        """Return fingerprints of the model, the corpus and the table of frequencies."""
        found = super().content()
        if self.spec.frequencies is not None:
            found["frequencies"] = frequencies_for(self.subject, self.spec.frequencies).digest
        return found

    @property
    def proxies(self) -> dict[str, Proxy]:
        """The proxies that gradients are compared with."""
        return self.own if self.shared is None else self.shared

    # --- the plan ---------------------------------------------------------------------------
    def plan(self) -> TangentPlan:
        """Draw documents: an early share for the proxy, the others for gradients."""
        frequencies = frequencies_for(self.subject, self.spec.frequencies)
        selection = self.select(frequencies)
        of_proxy, others = _cut(selection.items, self.spec.early)
        parts = [
            self.cut_units(dataclass_replace(selection, items=items))
            for items in (of_proxy, *_cut(others, 0.5))
        ]
        units = [unit for part in parts for unit in part]
        ranges, early = cut_batches(units, 1), len(parts[0])
        batches = [sum(map(len, part)) for part in parts]
        plan = self.make_plan(
            (tuple(ranges[:early]), tuple(ranges[early:])),
            units,
            selection.items,
            self.describe_corpus(
                selection, max(self.sites.widths[site] for site in self.chosen)
            ),
            names=gradient_measures(),
            sites=self.chosen,
            frequencies=frequencies,
        )
        return TangentPlan(**asdict(plan), first=batches[0], late=batches[0] + batches[1])

    # --- units ------------------------------------------------------------------------------
    def enter(self, plan: object, stage: int, before: State | None, /) -> None:
        """Turn to the proxy, or to gradients with what the first stage has found."""
        assert isinstance(plan, TangentPlan)
        self.planned, self.stage = plan, stage
        if stage and before is not None:
            self.own = self.fit(before)
            self.distances = tuple(read_distances(before, plan.counts.array))

    def fit(self, before: State) -> dict[str, Proxy]:
        """Return the proxies of all sites, from the activations of the first stage."""
        for site, why in before.trouble.items():
            raise RowError(
                f"expected finite activations at {site}, got NaN or infinity at {why}",
                hint="try --dtype=float32, or exclude the site with --sites",
                slug="site-not-finite",
            )
        return {site: self._fit_site(site, before.survey_of(site)) for site in self.chosen}

    def _fit_site(self, site: str, survey: Survey) -> Proxy:
        spec = self.spec
        here = next(parts for _, names, parts in variants(survey.held) if spec.variant in names)
        moments = accumulator_of(here, Moments).finalize()
        mean, scatter, rows = moments.mean, moments.whole.scatter, moments.count
        with one_blas_thread():
            if spec.proxy == "pca":
                return fit_pca(
                    mean, scatter, rows, rank=spec.rank, explained=spec.explained, site=site
                )
            sample = accumulator_of(here, Reservoir).finalize().rows
            return fit_semi_nmf(
                sample.astype(np.float64),
                mean,
                scatter,
                rows,
                rank=spec.rank,
                seed=spec.draw.seed,
                site=site,
            )

    def run(self, unit: object, _scratch: Scratch, ticks: Ticks, /) -> Survey:
        """Run the documents of a unit; where memory ends, again in smaller batches."""
        assert isinstance(unit, Batches)

        def attempt(parts: list[list[int]]) -> Survey:
            with threads(self.planned.threads):
                if self.stage == 0:
                    return self._run_forward(parts, ticks)
                return self._run_backward(parts, unit.first, ticks)

        return halve_where_memory_ends(
            self.planned.batches(unit),
            attempt,
            ticks.note,
            f"a single document of at most {self.spec.length} tokens in "
            f"{self.subject.loaded.name}",
            "lower --length, name fewer --sites, or use --dtype=bfloat16",
        )

    def _run_forward(self, batches: list[list[int]], ticks: Ticks) -> Survey:
        """Sum the activations that the proxy is fitted to."""
        survey = Survey()
        also: tuple[Kind, ...] = (Tally, Moments)
        also += () if self.spec.proxy == "pca" else (Reservoir,)
        sampled = sampled_sites(self.chosen)
        kinds = {
            site: SiteKinds(
                (),
                causes=False,
                intervals=False,
                also=(*also, Vocabulary) if site in sampled else also,
            )
            for site in self.chosen
        }
        options = ListenerOptions(
            sinks=self.spec.sinks,
            seed=self.spec.draw.seed,
            folded=(self.planned.drawn.documents or 0) > GROUPS,
            sketched=False,
            gather=True,
        )
        done = 0

        def tick(rows: int) -> None:
            nonlocal done
            done += rows
            ticks.at(done)

        runner = Runner(self.subject.loaded.body, self.sites, self.feed)
        loaded = (list(map(self._open, batch)) for batch in batches)

        def take(site: str, row_class: str, block: "TensorBlock") -> None:
            survey.update((site, row_class), kinds[site].first(site), block)

        def meet(_site: str, _variant: str, _classes: object) -> None:
            """Documents in several classes concern intervals, of which there are none."""

        runner.run(self.chosen, loaded, options.listener(take, survey.drop, meet), tick)
        survey.sort(self.chosen)
        trim()
        return survey

    def _run_backward(self, batches: list[list[int]], first: int, ticks: Ticks) -> Survey:
        """Sum the gradients of micro-batches, and what tokens the proxy is about."""
        sums = GradientSums(
            {site: proxy.basis for site, proxy in self.proxies.items()},
            seed=self.spec.draw.seed,
            folded=(self.planned.drawn.documents or 0) > GROUPS,
            bands=Frequencies(self.planned.counts.array).bands(),
            concepts={
                site: Concepts(len(each.centre), each.basis, each.centre, each.shares)
                for site, each in self.proxies.items()
            },
            decode=None if self.subject.loaded.tokenizer is None else self._decode,
            apart=[
                site
                for site in sampled_sites(self.chosen)
                if self.sites.widths[site] <= WIDEST_APART
            ],
        )
        backward = Backward(self.sites, self.objective, self.spec.draw.seed)
        ears = Ears(
            activations=sums.add_activations,
            gradients=sums.add,
            shuffled=partial(sums.add, shuffled=True),
            weights=sums.add_weights,
        )
        done = 0
        for number, batch in enumerate(batches, start=first):
            prepared = [each for each in map(self._open, batch) if each is not None]
            keys = self._keys(prepared)
            targets = self.objective.targets(prepared, keys)
            begin = partial(self._begin, sums, targets, keys, number)
            backward.run(self.chosen, targets, number - self.planned.first, ears, begin)
            done += sum(each.length for each in prepared)
            ticks.at(done)
            if number % TRIMMED == 0:
                trim()
        trim()
        survey = sums.finish()
        survey.sort(self.chosen)
        return survey

    def _begin(
        self, sums: GradientSums, targets: Targets, keys: np.ndarray, number: int, rows: Tensor
    ) -> None:
        sums.begin(
            self.objective.keys_of(keys),
            rows,
            tokens=targets.tokens,
            real=targets.real,
            number=number - self.planned.first,
            late=number >= self.planned.late,
        )

    def _keys(self, prepared: Sequence[Prepared]) -> np.ndarray:
        """Return the keys of documents, the same in every run of the corpus."""
        hashes = np.array([each.key or 0 for each in prepared], dtype=np.uint64)
        return keyed_documents(hashes, seed=self.spec.draw.seed)

    def _open(self, ordinal: int) -> Prepared | None:
        if self.labels is not None:
            document = self.corpus.document(ordinal)
            self.labels.see(document.id, document.label)
        return self.open_document(ordinal)

    def _decode(self, tokens: list[int]) -> str:
        assert self.subject.loaded.tokenizer is not None
        return str(self.subject.loaded.tokenizer.decode(tokens))

    # --- the end ----------------------------------------------------------------------------
    def finish(self, done: Finished) -> Results[Reading]:
        """Return the readings of all sites, and write the run where there is a target."""
        plan = done.plan_as(TangentPlan)
        readings = self.read_summaries(
            dataclass_replace(done, found=[done.found[-1]]),
            self.spec.options_of_measures(),
            {"loss": self.objective.name},
            self.subject.loaded.identity,
            more=tuple(read_distances(done.state, plan.counts.array)),
        )
        return tangent_results(readings)


def _cut(items: Sequence[Item], share: float) -> tuple[list[Item], list[Item]]:
    """Return the first documents with about this share of the rows, and the others."""
    if len(items) < 2:
        raise TooFewRowsError(
            f"a proxy and gradients need at least 3 documents, got {len(items)}",
            hint="give more documents, or raise --tokens: they must be different ones",
            slug="tangent-documents",
        )
    ends = np.cumsum([item.length for item in items])
    place = int(np.searchsorted(ends, share * ends[-1])) + 1
    place = min(max(place, 1), len(items) - 1)
    return list(items[:place]), list(items[place:])

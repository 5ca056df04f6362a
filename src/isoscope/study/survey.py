"""The survey of a model: its spec, and the worker that reads every site."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Generic, Literal, TypeVar

import numpy as np
from msgspec import structs
from msgspec.structs import replace

from isoscope.accumulate import Groups
from isoscope.accumulate.survey import Kind, Survey
from isoscope.display import Results
from isoscope.engine import Notify
from isoscope.engine.allocator import trim
from isoscope.engine.base import Scratch, Ticks
from isoscope.engine.plan import Plan
from isoscope.hashing import GROUPS
from isoscope.site import is_matrix
from isoscope.store.origin import SourceRecord
from isoscope.store.state import State
from isoscope.study.documents import (
    Batches,
    DocumentsSpec,
    DocumentsWorker,
    KeptDocuments,
    MatrixRows,
    SurveyPlan,
    cut_batches,
)
from isoscope.study.frequency import Frequencies
from isoscope.study.lanes import block_rows
from isoscope.study.measure_choice import Reads
from isoscope.study.model import ModelSpec
from isoscope.study.option import about
from isoscope.study.passes import (
    ListenerOptions,
    SiteKinds,
    begin_second,
    first_pass,
    second_pass,
)
from isoscope.study.rows import sum_rows
from isoscope.study.run import Finished, Live
from isoscope.study.selection import (
    Selection,
    frequencies_for,
    has_tokens,
    pooling_for,
    select_sites,
    turns_for,
)
from isoscope.types import Array, Chunk, Reading

if TYPE_CHECKING:
    from torch import Tensor

    from isoscope.capture.loss import Loss

TOKENS = 100_000
LANES = 2  # batches that go through a model at a time
TRIMMED = 2  # passes after which free memory goes back
R_co = TypeVar("R_co", covariant=True)


class SurveyedSpec(DocumentsSpec[R_co], Generic[R_co], frozen=True, kw_only=True):
    """The options of what surveys a model, or several of them one after the other."""

    sites: Annotated[
        tuple[str, ...] | None,
        about(
            "Sites or families: resid, norm, embed, unembed, attn, mlp, q, k, v, pooled; "
            "resid.3, enc.resid",
            "S,S",
            default="resid, norm, embed, both matrices, pooled",
            commas=True,
        ),
    ] = None
    reads: Reads = Reads()
    pooling: Annotated[
        Literal["mean", "cls", "last", "max"] | None,
        about(
            "How to pool tokens into one vector: mean, cls, last or max",
            "MODE",
            default="the model's own",
        ),
    ] = None
    truncate_dim: Annotated[
        int | None, about("Cut pooled vectors to N numbers.", "N", least=1)
    ] = None
    frequencies: Annotated[
        str | None,
        about(
            "Token counts by id (npy) or by token (json)",
            "FILE",
            default="of the corpus",
            path=True,
        ),
    ] = None
    turns: Annotated[
        int | None,
        about("Survey the sites in N turns, to save memory.", "N", least=1, local=True),
    ] = None


class SurveySpec(SurveyedSpec[Results[Reading]], frozen=True, kw_only=True):
    """Run a model over a corpus and read every site; activations are never kept.

    With `output` a run folder is written; an unfinished one with the same options is
    resumed.
    """

    command: ClassVar[str] = "survey"
    plans: ClassVar[type[Plan]] = SurveyPlan
    worker_at: ClassVar[str] = "isoscope.study.survey:ModelWorker"
    torch_for: ClassVar[str] = "a survey"
    stays_open: ClassVar[bool] = True
    reads_again: ClassVar[str] = "isoscope.study.saved_runs:read"

    load: ModelSpec


class ModelWorker(DocumentsWorker[SurveySpec]):
    """A model that is loaded and a corpus that is open."""

    def __init__(
        self, spec: SurveySpec, notify: Notify, live: Live, kept: KeptDocuments | None = None
    ) -> None:
        spec.reads.names(text=True)  # a misspelt name, before a model is loaded
        super().__init__(spec, spec.load, notify, live, kept)
        self.pooling = pooling_for(self.subject, spec.pooling)
        self.alone: set[str] = set()  # sites that had the rows of another, but not always
        self.changes_itself = False  # whether a forward pass was seen to change the model

    def content(self) -> dict[str, str]:
        """Return fingerprints of the model, the corpus and the table of frequencies."""
        found = super().content()
        if self.spec.frequencies is not None:
            found["frequencies"] = frequencies_for(self.subject, self.spec.frequencies).digest
        return found

    def plan(self, *, check_loss: bool = True) -> SurveyPlan:
        """Draw documents, choose sites, and cut the work into units."""
        spec = self.spec
        names = spec.reads.names(text=has_tokens(self.subject))
        frequencies = frequencies_for(self.subject, spec.frequencies)
        selection = self.select(frequencies)
        sites = select_sites(
            self.subject, spec.sites, self.pooling is not None, spec.truncate_dim
        )
        turns = turns_for(self.subject, sites, spec.turns, self.notify.tell)
        units = self.cut_units(selection)
        matrices = tuple(site for site in sites if is_matrix(site))
        in_turns = [site for site in sites if not is_matrix(site)]
        first = cut_batches(units, turns if in_turns else 0)
        kinds = SiteKinds(names, named=spec.reads.measures)
        has_second = spec.reads.all and any(kinds.second(site) for site in in_turns)
        last = (MatrixRows(matrices),) if matrices else ()
        return self.make_plan(
            ((*first, *last), tuple(first)) if has_second else ((*first, *last),),
            units,
            selection.items,
            self._describe_corpus(selection, check_loss=check_loss),
            names=names,
            sites=sites,
            turns=turns,
            frequencies=frequencies,
        )

    def _check_loss(self, selection: Selection) -> "tuple[Loss | None, list[str]]":
        """Return the loss on the first documents, and what is to be said of it."""
        import torch

        from isoscope.capture.runner import threads

        loaded = self.subject.loaded
        with threads(self.spec.threads or torch.get_num_threads()):
            found = self.find_loss((item.ordinal for item in selection.items), selection.rows)
        if found is None:
            return None, []
        self.notify.tell(found.line())
        wrong = "" if loaded.identity.get("untrained") else found.warning()
        if not wrong:
            return found, [found.line()]
        self.notify.tell(f"warning: {wrong}")
        return found, [found.line(), wrong]

    def find_loss(self, ordinals: Iterable[int], rows: int) -> "Loss | None":
        """Return the loss on the first of these documents, of a survey of so many rows."""
        from isoscope.capture.loss import next_token_loss

        prepared = map(self.open_document, ordinals)
        documents = (each for each in prepared if each is not None)
        return next_token_loss(self.subject.loaded, self.feed, documents, rows=rows)

    def _describe_corpus(self, selection: Selection, *, check_loss: bool) -> SourceRecord:
        loss, said = self._check_loss(selection) if check_loss else (None, [])
        width = max(self.subject.sites.widths.values(), default=0)
        found = self.describe_corpus(selection, width, said)
        return found if loss is None else replace(found, loss=structs.asdict(loss))

    def enter(self, plan: object, stage: int, before: State | None) -> None:
        """Turn to the first pass, or to the second with what the first has found."""
        assert isinstance(plan, SurveyPlan)
        self.planned = plan
        self.before = before
        self.kinds = SiteKinds(plan.names, named=self.spec.reads.measures)
        self.listener_options = ListenerOptions(
            sinks=self.spec.sinks,
            seed=self.spec.draw.seed,
            folded=(plan.drawn.documents or 0) > GROUPS,
            sketched=any(Groups in self.kinds.of(site) for site in plan.sites),
            gather=True,
            alone=self.alone if len(plan.stages) == 1 else None,
            bands=Frequencies(plan.counts.array).bands(),
            decode=None if self.subject.loaded.tokenizer is None else self._decode,
        )

    def run(self, unit: object, scratch: Scratch, ticks: Ticks) -> Survey:
        """Run the documents of a unit; where memory ends, again in smaller batches."""
        from isoscope.capture.listener import NotAlikeError
        from isoscope.capture.runner import (
            ChangesItselfError,
            halve_where_memory_ends,
            threads,
        )

        if isinstance(unit, MatrixRows):
            return self._matrices(unit)
        assert isinstance(unit, Batches)

        def attempt(parts: list[list[int]]) -> Survey:
            while True:
                try:
                    with threads(max(self.planned.threads // self._lanes, 1)):
                        return self._run_batches(unit, parts, ticks)
                except NotAlikeError as error:
                    self.alone.add(error.site)
                except ChangesItselfError:
                    self.changes_itself = True

        return halve_where_memory_ends(
            self.planned.batches(unit),
            attempt,
            ticks.note,
            f"a single document of at most {self.spec.length} tokens in "
            f"{self.subject.loaded.name}",
            "lower --length, do the sites in more --turns, or use --dtype=bfloat16",
        )

    def _run_batches(self, unit: Batches, batches: list[list[int]], ticks: Ticks) -> Survey:
        from isoscope.capture.runner import Runner

        sites = self.planned.sites_of_turn(unit.turn)
        if self.before is None:
            survey = Survey()
            listener = first_pass(survey, self.kinds, self.listener_options)
        else:
            survey = begin_second(self.before, sites, self.kinds)
            listener = second_pass(survey, self.listener_options)
        runner = Runner(
            self.subject.loaded.body,
            self.subject.sites,
            self.feed,
            pooling=self.pooling,
            truncate=self.spec.truncate_dim,
        )
        done = passes = 0

        def tick(rows: int) -> None:
            nonlocal done, passes
            done, passes = done + rows, passes + 1
            ticks.at(done)
            if passes % TRIMMED == 0:
                trim()  # states among the tensors of passes leave holes

        # Documents are loaded batch by batch: a unit of images may be larger than memory.
        loaded = (list(map(self.open_document, batch)) for batch in batches)
        lanes = 1 if self.changes_itself else self._lanes
        runner.run(sites, loaded, listener, tick, lanes=lanes)
        survey.sort(sites)
        trim()  # before the state is copied
        return survey

    @property
    def _lanes(self) -> int:
        """How many batches go through the model at a time.

        Two with half of the threads each: they need not wait for each other at every product,
        and while one computes sums in one thread, the other goes on. The numbers are those of
        one after the other. Accelerators, models spread over devices, models with code of
        their own and hooks for heads, which are of the process, get one.
        """
        plan, spec = self.planned, self.spec
        alone = (
            plan.threads < LANES
            or self.feed.device.type != "cpu"
            or spec.device_map is not None
            or spec.load.trust_remote_code
            or any(site in self.subject.sites.heads for site in plan.sites)
        )
        return 1 if alone else LANES

    def _decode(self, tokens: list[int]) -> str:
        assert self.subject.loaded.tokenizer is not None
        with self._tokenizing:
            return str(self.subject.loaded.tokenizer.decode(tokens))

    def _matrices(self, unit: MatrixRows) -> Survey:
        """Measure the rows of the embedding matrices; those of a tied one once."""
        from isoscope.capture.sites import shares_memory

        whole = Survey()
        weights = self.subject.sites.weights
        here = [site for site in weights if site in unit.sites]  # embeddings come first
        for number, site in enumerate(here):
            alike = (
                other
                for other in here[:number]
                if shares_memory(weights[other], weights[site])
                and self.kinds.of(other) == self.kinds.of(site)
            )
            source = next(alike, None)
            if source is None:
                whole.merge(self._sum_matrix(site, weights[site]))
            elif source in whole.trouble:
                whole.drop(site, whole.trouble[source])
            else:
                whole.same[site] = source
        return whole

    def _sum_matrix(self, site: str, weight: "Tensor") -> Survey:
        matrix = weight.detach().float().cpu().numpy()
        second = self.kinds.second(site) if self.spec.reads.all else ()
        return sum_matrix(
            matrix, site, self.kinds.first(site), second, seed=self.spec.draw.seed
        )

    def finish(self, done: Finished) -> Results[Reading]:
        """Return the readings, and write the run where there is a target."""
        return self.read_summaries(
            done,
            self.spec.reads.options(documents=True),
            {"pooling": getattr(self.pooling, "mode", None)},
            self.subject.loaded.identity | {"layers": self.subject.sites.layers},
        )


def sum_matrix(
    matrix: Array, site: str, first: Sequence[Kind], second: Sequence[Kind], *, seed: int = 0
) -> Survey:
    """Return the summaries of the rows of a matrix, each a document of its own."""
    bad = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if len(bad):
        return Survey(trouble={site: f"row {bad[0]} of the matrix"})
    step = block_rows(len(matrix.T))
    chunks = [
        Chunk(matrix[start : start + step], site, start)
        for start in range(0, len(matrix), step)
    ]
    place = (site, "all")
    survey = sum_rows(chunks, place, first, seed=seed)
    survey.seen = {}
    if second:
        again = sum_rows(chunks, place, second, before=survey, seed=seed)
        survey.held[place].update(again.held[place])
    return survey

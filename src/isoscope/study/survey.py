"""The survey of a model: its spec, its plan, and the worker that runs documents through it."""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated, ClassVar, Generic, Literal, TypeVar, cast

import numpy as np
from msgspec import structs
from msgspec.structs import replace

from isoscope.accumulate import Groups
from isoscope.accumulate.survey import Kind, Survey
from isoscope.display import Results
from isoscope.engine import Notify
from isoscope.engine.allocator import trim
from isoscope.engine.base import Scratch, Ticks
from isoscope.engine.plan import Packed, Plan, Unit
from isoscope.hashing import GROUPS
from isoscope.site import is_matrix
from isoscope.source.corpus.corpus import Corpus
from isoscope.store import Origin, new_origin
from isoscope.store.origin import SourceRecord
from isoscope.store.state import State
from isoscope.study.frequency import Frequencies
from isoscope.study.lanes import block_rows
from isoscope.study.measure_choice import Reads
from isoscope.study.model import (
    ModelSites,
    ModelSpec,
    Seed,
    WideCorpusSpec,
    model_content,
    open_documents,
    open_model,
)
from isoscope.study.option import MOST_THREADS, Part, about
from isoscope.study.passes import (
    ListenerOptions,
    SiteKinds,
    begin_second,
    first_pass,
    second_pass,
)
from isoscope.study.rows import finish_readings, sum_rows
from isoscope.study.run import Finished, Live, Runnable
from isoscope.study.selection import (
    Selection,
    frequencies_for,
    has_tokens,
    pooling_for,
    prepare_document,
    schedule,
    select_documents,
    select_sites,
    turns_for,
)
from isoscope.types import Array, Chunk, Reading

if TYPE_CHECKING:
    from torch import Tensor

    from isoscope.capture.feed import Feed, Prepared
    from isoscope.capture.loss import Loss

TOKENS = 100_000
LANES = 2  # batches that go through a model at a time
TRIMMED = 2  # passes after which free memory goes back
R_co = TypeVar("R_co", covariant=True)


class Batches(Unit, frozen=True, tag=True):
    """Batches of the plan, run for the sites of one turn."""

    turn: int
    first: int
    last: int  # exclusive


class MatrixRows(Unit, frozen=True, tag="Matrices"):
    """Embedding matrices, whose rows are measured."""

    sites: tuple[str, ...]


class SurveyPlan(Plan, frozen=True, kw_only=True):
    """Documents in the order they are run, sites, and what every unit has to know."""

    stages: tuple[tuple[Batches | MatrixRows, ...], ...]
    names: tuple[str, ...]  # of measures
    sites: tuple[str, ...]  # all of them, in order
    turns: int
    ordinals: Packed  # documents, batch after batch
    lengths: Packed  # the rows that each of them gives
    starts: Packed  # where batches begin among the ordinals, and the end
    counts: Packed  # how often each token occurs; empty where there are no tokens
    drawn: SourceRecord  # what is known of the corpus once documents are drawn

    def sites_of_turn(self, turn: int) -> tuple[str, ...]:
        """Return the sites of a turn; matrices are in none."""
        return tuple(site for site in self.sites if not is_matrix(site))[turn :: self.turns]

    def batches(self, unit: Batches) -> list[list[int]]:
        """Return the documents of a unit, batch by batch."""
        ordinals, starts = self.ordinals.array, self.starts.array
        return [
            ordinals[starts[number] : starts[number + 1]].tolist()
            for number in range(unit.first, unit.last)
        ]

    def size(self, stage: int, unit: int) -> int | None:
        """Return the rows of a unit; a matrix takes no time to speak of."""
        task = self.stages[stage][unit]
        if isinstance(task, MatrixRows):
            return 0
        starts = self.starts.array
        lengths = self.lengths.array[starts[task.first] : starts[task.last]]
        return int(cast(np.int64, lengths.sum()))


class SurveyedSpec(Runnable[R_co], Generic[R_co], frozen=True, kw_only=True):
    """The options of what surveys a model, or several of them one after the other."""

    load: Part
    read: WideCorpusSpec = WideCorpusSpec()
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
    tokens: Annotated[
        int | None, about("Stop after about N tokens.", "N", least=2, local=True)
    ] = TOKENS
    length: Annotated[int, about("Cut documents to N tokens.", "N", least=2)] = 512
    batch: Annotated[int, about("At most N documents per batch.", "N", least=1, local=True)] = (
        32
    )
    unit: Annotated[
        int | None,
        about(
            "Tokens per checkpointed unit.",
            "N",
            least=1,
            default="a quarter of all, 32768 to 131072",
            local=True,
        ),
    ] = None
    device_map: Annotated[
        str | None, about("auto spreads a large model over devices.", "MAP", local=True)
    ] = None
    untrained: Annotated[
        bool, about("Use the same architecture with random weights.", local=True)
    ] = False
    pooling: Annotated[
        Literal["mean", "cls", "last", "max"] | None,
        about(
            "How to pool tokens into one vector: mean, cls, last or max",
            "MODE",
            default="the model's own",
        ),
    ] = None
    prompt: Annotated[
        str | None, about("Text before every document, or the name of a prompt.", "P")
    ] = None
    no_bos: Annotated[
        bool, about("Drop the token that the model's files put at the beginning of texts.")
    ] = False
    truncate_dim: Annotated[
        int | None, about("Cut pooled vectors to N numbers.", "N", least=1)
    ] = None
    sinks: Annotated[
        float,
        about(
            "Call a token a norm sink above K times the median norm of its document.",
            "K",
            least=1.0,
        ),
    ] = 10.0
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
    draw: Seed = Seed()
    threads: Annotated[
        int | None,
        about(
            "Threads per unit; their number changes the last bits",
            "N",
            least=1,
            most=MOST_THREADS,
            default="torch's",
            local=True,
        ),
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


class ModelWorker:
    """A model that is loaded and a corpus that is open."""

    def __init__(self, spec: SurveySpec, notify: Notify, live: Live) -> None:
        from isoscope.capture.feed import feed_for
        from isoscope.capture.feed.reader import adds_bos

        spec.reads.names(text=True)  # a misspelt name, before a model is loaded
        self.spec = spec
        self.notify = notify
        self.subject: ModelSites = open_model(
            spec.load,
            live=live.get("model"),
            device_map=spec.device_map,
            untrained=spec.untrained,
            seed=spec.draw.seed,
            say=notify.say,
        )
        read = spec.read
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
            self.subject.loaded, length=spec.length, prompt=spec.prompt, bos=not spec.no_bos
        )
        if spec.no_bos and not adds_bos(self.subject.loaded.tokenizer):
            notify.tell("--no-bos has no effect: this model's texts do not begin with bos")
        self.pooling = pooling_for(self.subject, spec.pooling)
        self.prepared: dict[int, Prepared] = {}  # documents that were drawn, as tokens
        self.alone: set[str] = set()  # sites that had the rows of another, but not always
        self.changes_itself = False  # whether a forward pass was seen to change the model
        self._tokenizing = Lock()  # a tokenizer may serve one thread at a time

    def content(self) -> dict[str, str]:
        """Return fingerprints of the model, the corpus and the table of frequencies."""
        found = model_content(self.subject)
        found["corpus"] = f"{self.corpus.name} {self.corpus.fingerprint}"
        if self.spec.frequencies is not None:
            found["frequencies"] = frequencies_for(self.subject, self.spec.frequencies).digest
        return found

    def plan(self, *, check_loss: bool = True) -> SurveyPlan:
        """Draw documents, choose sites, and cut the work into units."""
        import torch

        spec = self.spec
        names = spec.reads.names(text=has_tokens(self.subject))
        frequencies = frequencies_for(self.subject, spec.frequencies)
        selection = select_documents(
            self.corpus,
            self.feed,
            frequencies,
            seed=spec.draw.seed,
            tokens=spec.tokens,
            skip_bad=spec.read.skip_bad,
        )
        self.prepared = selection.prepared
        sites = select_sites(
            self.subject, spec.sites, self.pooling is not None, spec.truncate_dim
        )
        turns = turns_for(self.subject, sites, spec.turns, self.notify.tell)
        units = schedule(
            selection.items,
            unit_rows=spec.unit,
            documents=spec.batch,
            mixed=self.feed.mixes_lengths,
        )
        documents = [batch for unit in units for batch in unit]
        lengths = {item.ordinal: item.length for item in selection.items}
        ordinals = [ordinal for batch in documents for ordinal in batch]
        matrices = tuple(site for site in sites if is_matrix(site))
        in_turns = [site for site in sites if not is_matrix(site)]
        first = cut_batches(units, turns if in_turns else 0)
        kinds = SiteKinds(names, named=spec.reads.measures)
        has_second = spec.reads.all and any(kinds.second(site) for site in in_turns)
        last = (MatrixRows(matrices),) if matrices else ()
        return SurveyPlan(
            stages=((*first, *last), tuple(first)) if has_second else ((*first, *last),),
            threads=spec.threads or torch.get_num_threads(),
            names=names,
            sites=sites,
            turns=turns,
            ordinals=Packed.of(np.array(ordinals, dtype=np.int64)),
            lengths=Packed.of(np.array([lengths[each] for each in ordinals], dtype=np.int64)),
            starts=Packed.of(np.cumsum([0, *map(len, documents)], dtype=np.int64)),
            counts=Packed.of(frequencies.counts),
            drawn=self._describe_corpus(selection, check_loss=check_loss),
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

        prepared = map(self._prepare, ordinals)
        documents = (each for each in prepared if each is not None)
        return next_token_loss(self.subject.loaded, self.feed, documents, rows=rows)

    def _describe_corpus(self, selection: Selection, *, check_loss: bool) -> SourceRecord:
        corpus = self.corpus
        loss, said = self._check_loss(selection) if check_loss else (None, [])
        identity: dict[str, object] = self.subject.loaded.identity
        return SourceRecord(
            name=corpus.name,
            fingerprint=corpus.fingerprint,
            rows=selection.rows,
            dtype=str(identity["dtype"]),
            width=max(self.subject.sites.widths.values(), default=0),
            file=Path(corpus.place).name if corpus.place else "",
            kind=corpus.kind,
            documents=len(selection.items),
            of=len(corpus),
            truncated=selection.truncated,
            warnings=(*corpus.warnings, *selection.warnings(), *said),
            loss=None if loss is None else structs.asdict(loss),
        )

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
        loaded = (list(map(self._prepare, batch)) for batch in batches)
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

    def _prepare(self, ordinal: int) -> "Prepared | None":
        """Return a document made ready, as when it was drawn where that was kept."""
        kept = self.prepared.get(ordinal)
        with self._tokenizing:
            return prepare_document(self.corpus, self.feed, ordinal, kept)

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
        plan = done.plan_as(SurveyPlan)
        spec, drawn = self.spec, plan.drawn
        options = spec.reads.options(documents=True)
        remarks = (*drawn.warnings, *done.notes)

        def origin() -> Origin:
            settings = {
                **spec.settings(),
                **options,
                "measures": list(plan.names),
                "sites": list(plan.sites),
                "pooling": getattr(self.pooling, "mode", None),
                "known_by": None if self.corpus.has_ids else "content",
            }
            return new_origin(
                sources=[replace(drawn, warnings=remarks, units=done.id)],
                settings=settings,
                seed=spec.draw.seed,
                kind="survey",
                model=self.subject.loaded.identity | {"layers": self.subject.sites.layers},
            )

        return finish_readings(
            done,
            plan.names,
            self.subject.loaded.name,
            options,
            origin,
            order=plan.sites,
            remarks=remarks,
            flags={"tokens": spec.tokens or drawn.rows, "threads": plan.threads},
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


def cut_batches(units: Sequence[Sequence[object]], turns: int) -> list[Batches]:
    """Return the units of every turn; each is a range of batches."""
    ends = list(accumulate(len(unit) for unit in units))
    ranges = list(zip([0, *ends[:-1]], ends, strict=True))
    return [Batches(turn, first, last) for turn in range(turns) for first, last in ranges]

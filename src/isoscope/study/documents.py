"""Documents through a model: options, plan and worker that surveys and heads share."""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Generic, TypeVar, cast

import numpy as np
from msgspec.structs import replace

from isoscope.accumulate.survey import Survey
from isoscope.display import Results
from isoscope.engine import Notify, Ticks
from isoscope.engine.plan import Packed, Plan, Unit
from isoscope.site import is_matrix
from isoscope.source.corpus.corpus import Corpus
from isoscope.store import Origin, new_origin
from isoscope.store.origin import SourceRecord
from isoscope.study.frequency import Frequencies
from isoscope.study.measure_choice import Computed
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
from isoscope.study.rows import finish_readings
from isoscope.study.run import Finished, Live, Runnable
from isoscope.study.selection import (
    PREPARED,
    Item,
    Selection,
    prepare_document,
    schedule,
    select_documents,
)
from isoscope.types import Reading

if TYPE_CHECKING:
    from isoscope.capture.feed import Feed, Prepared

TOKENS = 100_000
R_co = TypeVar("R_co", covariant=True)
S = TypeVar("S", bound="DocumentsSpec[object]")


# --- the plan -----------------------------------------------------------------------------
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


def cut_batches(units: Sequence[Sequence[object]], turns: int) -> list[Batches]:
    """Return the units of every turn; each is a range of batches."""
    ends = list(accumulate(len(unit) for unit in units))
    ranges = list(zip([0, *ends[:-1]], ends, strict=True))
    return [Batches(turn, first, last) for turn in range(turns) for first, last in ranges]


# --- the options --------------------------------------------------------------------------
class DocumentsSpec(Runnable[R_co], Generic[R_co], frozen=True, kw_only=True):
    """The options of what runs documents through a model, or through several."""

    load: Part
    read: WideCorpusSpec = WideCorpusSpec()
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
            default="a quarter of all, 32768 to 131072; a small model's up to 262144",
            local=True,
        ),
    ] = None
    device_map: Annotated[
        str | None, about("auto spreads a large model over devices.", "MAP", local=True)
    ] = None
    untrained: Annotated[
        bool, about("Use the same architecture with random weights.", local=True)
    ] = False
    prompt: Annotated[
        str | None, about("Text before every document, or the name of a prompt.", "P")
    ] = None
    no_bos: Annotated[
        bool, about("Drop the token that the model's files put at the beginning of texts.")
    ] = False
    sinks: Annotated[
        float,
        about(
            "Call a token a norm sink above K times the median norm of its document.",
            "K",
            least=1.0,
        ),
    ] = 10.0
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


# --- the worker ---------------------------------------------------------------------------
class KeptDocuments:
    """Documents as tokens, for all checkpoints: as many as fit into a little memory."""

    most = 8 * PREPARED

    def __init__(self) -> None:
        self.held: dict[int, Prepared] = {}
        self._bytes = 0

    def get(self, ordinal: int) -> "Prepared | None":
        """Return a document, where it was kept."""
        return self.held.get(ordinal)

    def keep(self, found: "Mapping[int, Prepared]") -> None:
        """Keep more of them, as long as there is room."""
        for ordinal, each in found.items():
            parts = (*each.inputs.values(), *each.special.values())
            size = sum(part.nbytes for part in parts)
            if ordinal not in self.held and self._bytes + size <= self.most:
                self.held[ordinal] = each
                self._bytes += size


class DocumentsWorker(Generic[S]):
    """A model that is loaded, a corpus that is open, and how one is fed to the other."""

    def __init__(
        self,
        spec: S,
        load: ModelSpec,
        notify: Notify,
        live: Live,
        kept: KeptDocuments | None = None,
    ) -> None:
        from isoscope.capture.feed import feed_for
        from isoscope.capture.feed.reader import adds_bos

        self.spec = spec
        self.notify = notify
        self.subject: ModelSites = open_model(
            load,
            live=live.get("model"),
            device_map=spec.device_map,
            untrained=spec.untrained,
            seed=spec.draw.seed,
            say=notify.say,
        )
        loaded = self.subject.loaded
        self.corpus: Corpus = open_documents(spec.read, live.get("corpus"), length=spec.length)
        self.feed: Feed = feed_for(
            loaded, length=spec.length, prompt=spec.prompt, bos=not spec.no_bos
        )
        if spec.no_bos and not adds_bos(loaded.tokenizer):
            notify.tell("--no-bos has no effect: this model's texts do not begin with bos")
        self.prepared: dict[int, Prepared] = {}  # documents that were drawn, as tokens
        self.kept = kept  # those that the checkpoints of a series share
        self._tokenizing = Lock()  # a tokenizer may serve one thread at a time

    def content(self) -> dict[str, str]:
        """Return fingerprints of the model and the corpus."""
        found = model_content(self.subject)
        found["corpus"] = f"{self.corpus.name} {self.corpus.fingerprint}"
        return found

    def select(self, frequencies: Frequencies) -> Selection:
        """Draw documents, and keep the first of them as tokens."""
        spec = self.spec
        selection = select_documents(
            self.corpus,
            self.feed,
            frequencies,
            seed=spec.draw.seed,
            tokens=spec.tokens,
            skip_bad=spec.read.skip_bad,
        )
        self.prepared = selection.prepared
        return selection

    def cut_units(self, selection: Selection) -> list[list[list[int]]]:
        """Return the documents of every unit, batch by batch."""
        from isoscope.capture.runner import count_weights

        return schedule(
            selection.items,
            unit_rows=self.spec.unit,
            documents=self.spec.batch,
            mixed=self.feed.mixes_lengths,
            weights=count_weights(self.subject.loaded.body),
        )

    def make_plan(
        self,
        stages: tuple[tuple[Batches | MatrixRows, ...], ...],
        units: Sequence[Sequence[Sequence[int]]],
        items: Sequence[Item],
        drawn: SourceRecord,
        *,
        names: tuple[str, ...],
        sites: tuple[str, ...],
        turns: int = 1,
        frequencies: Frequencies | None = None,
    ) -> SurveyPlan:
        """Return the plan of units that are cut."""
        import torch

        documents = [batch for unit in units for batch in unit]
        lengths = {item.ordinal: item.length for item in items}
        ordinals = [ordinal for batch in documents for ordinal in batch]
        counts = np.zeros(0, dtype=np.int64) if frequencies is None else frequencies.counts
        return SurveyPlan(
            stages=stages,
            threads=self.spec.threads or torch.get_num_threads(),
            names=names,
            sites=sites,
            turns=turns,
            ordinals=Packed.of(np.array(ordinals, dtype=np.int64)),
            lengths=Packed.of(np.array([lengths[each] for each in ordinals], dtype=np.int64)),
            starts=Packed.of(np.cumsum([0, *map(len, documents)], dtype=np.int64)),
            counts=Packed.of(counts),
            drawn=drawn,
        )

    def describe_corpus(
        self, selection: Selection, width: int, remarks: Sequence[str] = ()
    ) -> SourceRecord:
        """Return what is known of the corpus once documents are drawn."""
        corpus = self.corpus
        return SourceRecord(
            name=corpus.name,
            fingerprint=corpus.fingerprint,
            rows=selection.rows,
            dtype=str(self.subject.loaded.identity["dtype"]),
            width=width,
            file=Path(corpus.place).name if corpus.place else "",
            kind=corpus.kind,
            documents=len(selection.items),
            of=len(corpus),
            truncated=selection.truncated,
            warnings=(*corpus.warnings, *selection.warnings(), *remarks),
        )

    def open_document(self, ordinal: int) -> "Prepared | None":
        """Return a document made ready, as when it was drawn where that was kept."""
        known = None if self.kept is None else self.kept.get(ordinal)
        known = known or self.prepared.get(ordinal)
        with self._tokenizing:
            found = prepare_document(self.corpus, self.feed, ordinal, known)
        if self.kept is not None and known is None and found is not None:
            self.kept.keep({ordinal: found})
        return found

    def try_batches(
        self,
        plan: SurveyPlan,
        unit: Batches,
        attempt: Callable[[list[list[int]], Ticks], Survey],
        ticks: Ticks,
    ) -> Survey:
        """Run the documents of a unit; where memory ends, again in smaller batches."""
        from isoscope.capture.runner import halve_where_memory_ends, threads

        def on_threads(parts: list[list[int]]) -> Survey:
            with threads(plan.threads):
                return attempt(parts, ticks)

        return halve_where_memory_ends(
            plan.batches(unit),
            on_threads,
            ticks.note,
            f"a single document of at most {self.spec.length} tokens in "
            f"{self.subject.loaded.name}",
            "lower --length, or use --dtype=bfloat16",
        )

    def read_summaries(
        self,
        done: Finished,
        options: Computed,
        settings: Mapping[str, object],
        identity: dict[str, object],
        more: Sequence[Reading] = (),
    ) -> Results[Reading]:
        """Return the readings, and `more`; write the run where there is a target."""
        plan = done.plan_as(SurveyPlan)
        spec, drawn = self.spec, plan.drawn
        remarks = (*drawn.warnings, *done.notes)

        def origin() -> Origin:
            return new_origin(
                sources=[replace(drawn, warnings=remarks, units=done.id)],
                settings={
                    **spec.settings(),
                    **options,
                    **run_settings(plan, self.corpus),
                    **settings,
                },
                seed=spec.draw.seed,
                kind=spec.command,
                model=identity,
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
            more=more,
        )


def run_settings(plan: SurveyPlan, corpus: Corpus) -> dict[str, object]:
    """Return what the origin of a run says beside its options."""
    return {
        "measures": list(plan.names),
        "sites": list(plan.sites),
        "known_by": None if corpus.has_ids else "content",
    }

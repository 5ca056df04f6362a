"""The worker of `isoscope curvature MODEL`: occurrences of token types at its sites."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import asdict, replace

from isoscope.accumulate import Neighbourhoods
from isoscope.accumulate.survey import ORDINARY, Survey
from isoscope.capture.runner import Runner
from isoscope.display import Results
from isoscope.engine import Notify, Scratch, Ticks
from isoscope.engine.allocator import trim
from isoscope.engine.plan import Packed
from isoscope.errors import ConfigError, TooFewRowsError
from isoscope.hashing import type_hashes
from isoscope.lab.curvature.neighbourhoods import LEAST_TYPES, band_numbers
from isoscope.lab.curvature.results import CurvatureRecord
from isoscope.lab.curvature.spec import NeighbourhoodPlan, NeighbourhoodSpec
from isoscope.lab.curvature.type_results import KnownTypes, read_types, type_results
from isoscope.memory import as_bytes, free_memory
from isoscope.store import new_origin, save
from isoscope.store.state import State
from isoscope.study.documents import Batches, DocumentsWorker, cut_batches, run_settings
from isoscope.study.frequency import TOKENS, Frequencies
from isoscope.study.passes import ListenerOptions
from isoscope.study.run import Finished, Live, Planner
from isoscope.study.selection import frequencies_for, has_tokens
from isoscope.study.survey import TRIMMED
from isoscope.types import Array

if TYPE_CHECKING:
    from isoscope.capture.tensor_block import TensorBlock

SITES = ("resid",)


class DocumentCounts(Frequencies):
    """Counts of tokens, and in how many documents each of them occurs."""

    def __init__(self, table: Array | None = None) -> None:
        super().__init__(table)
        self.documents = np.zeros(0, dtype=np.int64)

    def see(self, inputs: Mapping[str, Array]) -> None:
        """Count the tokens of a document."""
        super().see(inputs)
        for name in TOKENS:
            if name in inputs:
                seen = np.unique(np.asarray(inputs[name]).reshape(-1))
                short = int(seen.max(initial=-1)) + 1 - len(self.documents)
                self.documents = np.pad(self.documents, (0, max(short, 0)))
                self.documents[seen] += 1


class NeighbourhoodWorker(
    DocumentsWorker[NeighbourhoodSpec], Planner[Results[CurvatureRecord]]
):
    """A loaded model, and an open corpus."""

    def __init__(self, spec: NeighbourhoodSpec, notify: Notify, live: Live) -> None:
        check_rank(spec)
        super().__init__(spec, spec.load, notify, live)
        if not has_tokens(self.subject):
            raise ConfigError(
                f"expected a model of text, got {self.subject.loaded.name}",
                hint="sounds and images have no token types; isoscope survey reads them",
                slug="curvature-text",
            )
        self.sites = tuple(
            site
            for site in self.subject.sites.select(spec.sites or SITES)
            if site not in self.subject.sites.weights
        )
        if not self.sites:
            raise ConfigError(
                "expected sites with tokens, got embedding matrices only",
                hint="a row of a matrix is one type, without occurrences: --sites resid",
                slug="curvature-sites",
            )

    def content(self) -> dict[str, str]:
        """Return fingerprints of the model, the corpus and the table of frequencies."""
        found = super().content()
        if self.spec.frequencies is not None:
            found["frequencies"] = frequencies_for(self.subject, self.spec.frequencies).digest
        return found

    def plan(self) -> NeighbourhoodPlan:
        """Draw documents, choose token types, and cut the work into units."""
        table = frequencies_for(self.subject, self.spec.frequencies)
        counts = DocumentCounts(table.counts if table.is_table else None)
        selection = self.select(counts)
        types = self._choose(counts)
        units = self.cut_units(selection)
        width = max(self.subject.sites.widths[site] for site in self.sites)
        plan = self.make_plan(
            (tuple(cut_batches(units, 1)),),
            units,
            selection.items,
            self.describe_corpus(selection, width),
            names=(),
            sites=self.sites,
            frequencies=counts,
        )
        return NeighbourhoodPlan(**asdict(plan), types=Packed.of(types))

    def _choose(self, counts: DocumentCounts) -> Array:
        """Return the types that occur in enough documents, so many of each frequency band."""
        spec = self.spec
        enough = np.flatnonzero(counts.documents >= spec.occurrences)
        tokenizer: Any = self.subject.loaded.tokenizer
        special = set(getattr(tokenizer, "all_special_ids", ()))
        known = [
            each for each in enough.tolist() if each not in special and counts.counts[each] > 0
        ]
        if len(known) < LEAST_TYPES:
            raise TooFewRowsError(
                f"a comparison of token types needs at least {LEAST_TYPES} types that occur in "
                f"{spec.occurrences} documents, got {len(known)}",
                hint="use a longer corpus, more --tokens or fewer --occurrences",
                slug="curvature-types",
            )
        types = np.array(known, dtype=np.int64)
        types = types[np.argsort(type_hashes(types))]  # a sample that no order has chosen
        bands = band_numbers(counts.counts[types] / counts.counts.sum())
        kept = [types[bands == band][: spec.per_band] for band in np.unique(bands)]
        found = np.sort(np.concatenate(kept))
        self._check_memory(len(found))
        return found

    def _check_memory(self, types: int) -> None:
        """Refuse occurrences that do not fit into memory, twice: of a unit and of all."""
        widths = sum(self.subject.sites.widths[site] for site in self.sites)
        needed, free = 2 * 4 * widths * types * self.spec.occurrences, free_memory()
        if needed > free:
            raise ConfigError(
                f"{self.spec.occurrences} occurrences of {types} types at {len(self.sites)} "
                f"sites take about {as_bytes(needed)} of memory, got {as_bytes(free)} free",
                hint="take fewer --sites, --occurrences or types --per-band",
                slug="curvature-memory",
            )

    def enter(self, plan: object, _stage: int, _before: State | None, /) -> None:
        """Take the plan."""
        assert isinstance(plan, NeighbourhoodPlan)
        self.planned = plan

    def run(self, unit: object, _scratch: Scratch, ticks: Ticks, /) -> Survey:
        """Run the documents of a unit; where memory ends, again in smaller batches."""
        assert isinstance(unit, Batches)
        return self.try_batches(self.planned, unit, self._run_batches, ticks)

    def _run_batches(self, batches: list[list[int]], ticks: Ticks) -> Survey:
        survey, types = Survey(), self.planned.types.array
        done = passes = 0

        def take(site: str, row_class: str, block: "TensorBlock") -> None:
            if row_class == ORDINARY:
                here = survey.held.setdefault((site, row_class), {})
                if Neighbourhoods not in here:
                    kept = self.spec.occurrences
                    here[Neighbourhoods] = Neighbourhoods(block.width, types, kept)
                here[Neighbourhoods].update(block)

        def tick(rows: int) -> None:
            nonlocal done, passes
            done, passes = done + rows, passes + 1
            ticks.at(done)
            if passes % TRIMMED == 0:
                trim()

        options = ListenerOptions(
            sinks=self.spec.sinks, seed=self.spec.draw.seed, sketched=False
        )
        listener = options.listener(take, survey.drop, lambda *_: None)
        runner = Runner(self.subject.loaded.body, self.subject.sites, self.feed)
        loaded = (list(map(self.open_document, batch)) for batch in batches)
        runner.run(self.planned.sites, loaded, listener, tick)
        survey.sort(self.planned.sites)
        trim()
        return survey

    def finish(self, done: Finished) -> Results[CurvatureRecord]:
        """Return what is read of all sites, and write the run where there is a target."""
        plan = done.plan_as(NeighbourhoodPlan)
        spec, drawn = self.spec, plan.drawn
        types, counts = plan.types.array, plan.counts.array
        known = KnownTypes(
            tokens=types.tolist(),
            shares=(counts[types] / counts.sum()).tolist(),
            names=[self._name(int(each)) for each in types],
            rank=spec.rank,
        )
        name = done.target.name if done.target is not None else self.subject.loaded.name
        readings = done.mark(read_types(done.state, plan.sites, known, name))
        if done.target is not None:
            settings = {
                **spec.settings(),
                **run_settings(plan, self.corpus),
                "documents": True,
                "measures": list(dict.fromkeys(each.measure for each in readings)),
                "neighbourhoods": known.to_dict(),
                "as_published": False,
            }
            remarks = (*drawn.warnings, *done.notes)
            origin = new_origin(
                sources=[replace(drawn, warnings=remarks, units=done.id)],
                settings=settings,
                seed=spec.draw.seed,
                kind="curvature",
                model=self.subject.loaded.identity,
            )
            config = spec.to_config(absolute=True) | {"tokens": spec.tokens or drawn.rows}
            save(
                done.target,
                done.state,
                readings,
                origin,
                {"curvature": config | {"threads": plan.threads}},
                done.overwrite,
                resume=True,
                id=done.id,
            )
        return type_results(readings, known, done.state.trouble)

    def _name(self, token: int) -> str:
        tokenizer = self.subject.loaded.tokenizer
        return str(token) if tokenizer is None else str(tokenizer.decode([token]))


def check_rank(spec: NeighbourhoodSpec) -> None:
    """Refuse a tangent space that half of the occurrences cannot determine."""
    most = spec.occurrences // 2 - 1  # a half has a mean as well
    if spec.rank >= most:
        raise ConfigError(
            f"expected a rank below {most} for {spec.occurrences} occurrences, got {spec.rank}",
            hint="the tangent space is that of half of the occurrences: take a smaller --rank, "
            "or more --occurrences",
            slug="curvature-rank",
        )

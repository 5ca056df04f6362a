"""The worker of `isoscope attention` over a series: one checkpoint after the other."""

from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from msgspec.structs import replace as with_fields

from isoscope.accumulate.survey import Survey
from isoscope.capture.runner import threads
from isoscope.display import READINGS, Results
from isoscope.engine import Notify, Scratch, Ticks
from isoscope.errors import IsoscopeError, RowError, UndefinedError
from isoscope.lab.attention.results import attention_results
from isoscope.lab.attention.spec import AttentionSpec, HeadSeriesPlan, HeadSeriesSpec
from isoscope.lab.attention.worker import AttentionWorker
from isoscope.store import new_origin, save
from isoscope.store.series import SeriesParts
from isoscope.store.state import State
from isoscope.study.checkpoints import (
    SeriesWorker,
    StepRecord,
    name_checkpoint,
    pack_spreads,
    survey_stages,
)
from isoscope.study.measure_choice import read_state
from isoscope.study.model import ModelSites, open_documents, open_model
from isoscope.study.reading import Spreads
from isoscope.study.run import Finished, Live, Planner
from isoscope.study.series import Checkpoint, other_shape, other_vocabulary
from isoscope.types import Reading

ONE = ("a series of attention heads", "isoscope attention of its folder")


class HeadSeriesWorker(SeriesWorker, Planner[Results[Reading]]):
    """An open corpus, and checkpoints that are loaded one ahead of the one that runs."""

    def __init__(self, spec: HeadSeriesSpec, notify: Notify, live: Live) -> None:
        self.spec = spec
        _ = spec.sample  # a wrong number, before a model is loaded
        super().__init__(spec.load.model or (), spec.load.revisions, notify, ONE)
        read = spec.read
        self.corpus = open_documents(
            read,
            live.get("corpus"),
            target=read.target,
            id=read.id,
            per=read.per,
            kind=read.kind,
            skip_bad=read.skip_bad,
            length=spec.length,
        )
        self.planned: HeadSeriesPlan | None = None

    def content(self) -> dict[str, str]:
        """Return fingerprints of what all checkpoints share; units have those of their own."""
        load = self.spec.load
        found = self.series_content(load.dtype, code=load.trust_remote_code)
        found["corpus"] = f"{self.corpus.name} {self.corpus.fingerprint}"
        return found

    def plan(self) -> HeadSeriesPlan:
        """Draw and tokenise documents once; one unit per checkpoint, broken ones last."""
        units, first = self.units(), self.first  # before anything is downloaded
        try:
            worker = self._reading(first)
        except IsoscopeError as error:
            raise name_checkpoint(first, error) from error
        heads = worker.plan()
        self.tokens.keep(worker.prepared)
        self.hold(first, worker.subject)
        return HeadSeriesPlan(
            stages=(units,),
            threads=heads.threads,
            heads=heads,
            shapes=_shapes(worker),
            vocabulary=str(worker.subject.loaded.identity["tokenizer"]),
            first=first.name,
        )

    # --- units ----------------------------------------------------------------------------
    def enter(self, plan: object, _stage: int, _before: State | None, /) -> None:
        """Take the plan."""
        assert isinstance(plan, HeadSeriesPlan)
        self.planned = plan

    def run(self, unit: object, scratch: Scratch, ticks: Ticks, /) -> StepRecord:
        """Read the heads of one checkpoint; one that cannot be loaded is named by its error."""
        assert isinstance(unit, Checkpoint)
        try:
            return self._measure(unit, scratch, ticks)
        except BaseException:
            self.settle()  # the error would be lost
            raise

    def _measure(self, unit: Checkpoint, scratch: Scratch, ticks: Ticks) -> StepRecord:
        assert self.planned is not None
        try:
            worker = self._reading(unit)
        except IsoscopeError as error:
            if not self.spec.load.skip_broken:
                raise name_checkpoint(unit, error) from error
            ticks.note(f"skipped {unit.name}, which cannot be loaded: {error.problem}")
            return StepRecord(step=unit.step, name=unit.name, problem=error.problem)
        self._check_like(worker, unit)
        plan, identity = self.planned.heads, worker.subject.loaded.identity
        spreads: Spreads = {}
        with (
            threads(self.planned.threads),
            TemporaryDirectory(prefix="isoscope-") as spare,
        ):
            state = survey_stages(
                worker, plan, scratch, ticks, str(identity["sha"]), Path(spare)
            )
            try:
                options = {"documents": True}
                found = read_state(state, plan.names, "", options, plan.sites, spreads)
            except RowError as error:  # no head has a number: training may have diverged
                ticks.note(f"skipped {unit.name}: {error.problem}")
                return StepRecord(step=unit.step, name=unit.name, problem=error.problem)
        if self.spec.load.free:
            self.remove(unit, identity)
        return StepRecord(
            step=unit.step,
            name=unit.name,
            identity=identity,
            fingerprint=self.print_of(unit.step),
            readings=[replace(each, step=unit.step) for each in found],
            parts=pack_spreads(unit, spreads),
            left_out=list(found.left_out),
            trouble=dict(found.trouble),
        )

    def _load(self, unit: Checkpoint) -> ModelSites:
        spec = self.spec
        return open_model(
            spec.load.one(unit.where),
            device_map=spec.device_map,
            untrained=spec.untrained,
            seed=spec.draw.seed,
            say=self.notify.say,
        )

    def _reading(self, unit: Checkpoint) -> AttentionWorker:
        """Return the worker of one checkpoint, over documents that others have tokenised."""
        live = {"model": self.take(unit), "corpus": self.corpus}
        fields = {name: getattr(self.spec, name) for name in self.spec.__struct_fields__}
        worker = AttentionWorker(AttentionSpec(**fields), Notify(), live)
        worker.tokens = self.tokens
        return worker

    def _check_like(self, worker: AttentionWorker, unit: Checkpoint) -> None:
        """Refuse a checkpoint of another model, or with another tokenizer."""
        assert self.planned is not None
        ours, theirs = self.planned.shapes, _shapes(worker)
        for layer in dict.fromkeys((*ours, *theirs)):
            if ours.get(layer) != theirs.get(layer):
                first, words = self.planned.first, (_words(ours, layer), _words(theirs, layer))
                raise other_shape(first, unit.name, f"{layer} {words[0]}", words[1])
        if str(worker.subject.loaded.identity["tokenizer"]) != self.planned.vocabulary:
            raise other_vocabulary(self.planned.first, unit.name)

    # --- the end --------------------------------------------------------------------------
    def finish(self, done: Finished) -> Results[Reading]:
        """Return the readings of all steps, and write the run where there is a target."""
        self.pool.shutdown(cancel_futures=True)
        plan = done.plan_as(HeadSeriesPlan)
        every = msgspec.convert(done.records, list[StepRecord])
        self.check_unchanged(every, done)
        records = sorted((each for each in every if not each.problem), key=lambda e: e.step)
        if len(records) < 2:
            raise UndefinedError(
                f"{ONE[0]} needs at least 2 checkpoints that can be read, got {len(records)}",
                hint="replace the checkpoints that are damaged, or hold NaN or infinity",
                slug="series-one",
            )
        name = done.target.name if done.target is not None else self.series_name
        left_out = list(dict.fromkeys(text for each in records for text in each.left_out))
        trouble = {
            f"{site} of {each.name}": why
            for each in records
            for site, why in each.trouble.items()
        }
        readings = Results(
            [replace(each, run=name) for record in records for each in record.readings],
            READINGS,
            remarks=(*plan.heads.drawn.warnings, *done.notes),
            left_out=left_out,
            trouble=trouble,
        )
        if done.target is not None:
            self._save(done, plan, records, readings)
        return attention_results(readings)

    def _save(
        self,
        done: Finished,
        plan: HeadSeriesPlan,
        records: list[StepRecord],
        readings: Results[Reading],
    ) -> None:
        spec, heads = self.spec, plan.heads
        shas = "\n".join(str(each.identity.get("sha")) for each in records)
        identity = {
            **records[-1].identity,
            "model": self.series_name,
            "sha": blake2b(shas.encode(), digest_size=32).hexdigest(),
        }
        origin = new_origin(
            sources=[with_fields(heads.drawn, warnings=tuple(readings.remarks), units=done.id)],
            settings={
                **spec.settings(),
                "documents": True,
                "measures": list(heads.names),
                "sites": list(heads.sites),
                "known_by": None if self.corpus.has_ids else "content",
                "checkpoints": [
                    {"step": e.step, "name": e.name, "sha": e.identity.get("sha")}
                    for e in records
                ],
            },
            seed=spec.draw.seed,
            kind="attention",
            model=identity,
        )
        parts = tuple(each.parts for each in records if each.parts is not None)
        flags = spec.to_config(absolute=True) | {"threads": plan.threads}
        save(
            done.target or "",
            State(Survey()),
            readings,
            origin,
            {"attention": flags},
            done.overwrite,
            resume=True,
            series=SeriesParts(steps=parts).encode(),
        )


def _shapes(worker: AttentionWorker) -> dict[str, tuple[int, int, int]]:
    """Return heads, key heads and width of every layer, by its first site without the head."""
    return {
        each.sites[0].rpartition(".")[0]: (each.heads, each.key_heads, each.width)
        for each in worker.heads.layers
    }


def _words(shapes: dict[str, tuple[int, int, int]], layer: str) -> str:
    if layer not in shapes:
        return "missing"
    heads, keys, width = shapes[layer]
    return f"of {heads} heads and {keys} heads of keys of width {width}"

"""The worker of `isoscope attention` over a series: one checkpoint after the other."""

from dataclasses import replace
from pathlib import Path

from msgspec.structs import asdict

from isoscope.display import Results
from isoscope.engine import Notify, Scratch, Ticks
from isoscope.lab.attention.results import attention_results
from isoscope.lab.attention.spec import AttentionSpec, HeadSeriesPlan, HeadSeriesSpec
from isoscope.lab.attention.worker import OPTIONS, AttentionWorker
from isoscope.store.atomic import SpareFolder
from isoscope.store.series import SeriesParts
from isoscope.study.checkpoints import (
    SeriesWorker,
    StepRecord,
    pack_spreads,
    survey_stages,
)
from isoscope.study.measure_choice import read_state
from isoscope.study.reading import Spreads
from isoscope.study.run import Finished, Live, Planner
from isoscope.study.series import Checkpoint, other_shape
from isoscope.types import Reading

ONE = ("a series of attention heads", "isoscope attention of its folder")


class HeadSeriesWorker(
    SeriesWorker[HeadSeriesSpec, AttentionWorker], Planner[Results[Reading]]
):
    """An open corpus, and checkpoints that are loaded one ahead of the one that runs."""

    def __init__(self, spec: HeadSeriesSpec, notify: Notify, live: Live) -> None:
        _ = spec.sample  # a wrong number, before a model is loaded
        super().__init__(spec, spec.load, notify, live, ONE)

    def plan(self) -> HeadSeriesPlan:
        """Draw and tokenise documents once; one unit per checkpoint, broken ones last."""
        units, first, worker = self.open_first()
        heads = worker.plan()
        self.tokens.keep(worker.prepared)
        self.hold(first, worker.subject)
        return HeadSeriesPlan(
            stages=(units,),
            threads=heads.threads,
            survey=heads,
            shapes=_shapes(worker),
            vocabulary=str(worker.subject.loaded.identity["tokenizer"]),
            first=first.name,
        )

    # --- units ----------------------------------------------------------------------------
    def open_step(self, unit: Checkpoint, notify: Notify) -> AttentionWorker:
        """Return the worker of one checkpoint, over documents that others have tokenised."""
        live = {"model": self.take(unit), "corpus": self.corpus}
        return AttentionWorker(AttentionSpec(**asdict(self.spec)), notify, live, self.tokens)

    def read_step(
        self, unit: Checkpoint, worker: AttentionWorker, scratch: Scratch, ticks: Ticks
    ) -> StepRecord:
        """Read the heads of one checkpoint."""
        assert self.planned is not None
        self._check_like(worker, unit)
        plan, identity = self.planned.survey, worker.subject.loaded.identity
        spreads: Spreads = {}
        with SpareFolder() as spare:
            state = survey_stages(
                worker, plan, scratch, ticks, str(identity["sha"]), Path(spare)
            )
            found = read_state(state, plan.names, "", OPTIONS, plan.sites, spreads)
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

    def _check_like(self, worker: AttentionWorker, unit: Checkpoint) -> None:
        """Refuse a checkpoint of another model, or with another tokenizer."""
        assert isinstance(self.planned, HeadSeriesPlan)
        ours, theirs = self.planned.shapes, _shapes(worker)
        for layer in dict.fromkeys((*ours, *theirs)):
            if ours.get(layer) != theirs.get(layer):
                first, words = self.planned.first, (_words(ours, layer), _words(theirs, layer))
                raise other_shape(first, unit.name, f"{layer} {words[0]}", words[1])
        self.check_vocabulary(worker.subject, unit)

    # --- the end --------------------------------------------------------------------------
    def finish(self, done: Finished) -> Results[Reading]:
        """Return the readings of all steps, and write the run where there is a target."""
        plan, records = done.plan_as(HeadSeriesPlan), self.read_records(done)
        remarks = (*plan.survey.drawn.warnings, *done.notes)
        readings = self.join_readings(done, records, remarks)
        if done.target is not None:
            parts = tuple(each.parts for each in records if each.parts is not None)
            self.save_series(
                done, records, readings, SeriesParts(steps=parts), settings=OPTIONS
            )
        return attention_results(readings)


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

"""The worker of `isoscope tangent` over a series: one checkpoint after the other.

The proxy is fitted once, to the activations of the checkpoints of an early share of training,
and kept; or each checkpoint has its own. Either way the proxy in use is compared with that of
the activations of the checkpoint before.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from msgspec.structs import asdict
from msgspec.structs import replace as with_fields

from isoscope.accumulate.survey import Survey
from isoscope.display import Results
from isoscope.engine import Notify, Scratch, Ticks
from isoscope.engine.plan import Packed
from isoscope.errors import IsoscopeError
from isoscope.lab.tangent.concepts import concepts_of
from isoscope.lab.tangent.results import ANGLE, tangent_results
from isoscope.lab.tangent.spec import (
    TangentPlan,
    TangentSeriesPlan,
    TangentSeriesSpec,
    TangentSpec,
)
from isoscope.lab.tangent.worker import TangentWorker
from isoscope.measures.proxy import Proxy, matches
from isoscope.store.atomic import SpareFolder
from isoscope.store.series import BasisParts, Numbers, SeriesParts
from isoscope.store.state import State
from isoscope.study.checkpoints import (
    SeriesWorker,
    StepRecord,
    do_stages,
    name_checkpoint,
    pack_spreads,
)
from isoscope.study.gradients import direction_name
from isoscope.study.measure_choice import read_state
from isoscope.study.reading import Spreads
from isoscope.study.run import Finished, Live, Planner
from isoscope.study.series import Checkpoint, other_shape
from isoscope.types import Array, Reading

ONE = ("a series of gradients", "isoscope tangent of its folder")
EARLY = 8  # checkpoints that a shared proxy is fitted to at most, evenly spread


class TangentSeriesWorker(
    SeriesWorker[TangentSeriesSpec, TangentWorker], Planner[Results[Reading]]
):
    """An open corpus, and checkpoints that are loaded one ahead of the one that runs."""

    def __init__(self, spec: TangentSeriesSpec, notify: Notify, live: Live) -> None:
        spec.check()
        super().__init__(spec, spec.load, notify, live, ONE)

    # --- the plan ---------------------------------------------------------------------------
    def plan(self) -> TangentSeriesPlan:
        """Draw and tokenise documents once, and fit the proxy that all checkpoints share."""
        units, first, worker = self.open_first()
        survey = worker.plan()
        self.tokens.keep(worker.prepared)
        self.hold(first, worker.subject)
        plan = TangentSeriesPlan(
            stages=(units,),
            threads=survey.threads,
            survey=survey,
            widths=_widths(worker),
            vocabulary=str(worker.subject.loaded.identity["tokenizer"]),
            first=first.name,
        )
        if self.spec.fit == "each":
            return plan
        proxies = self._fit_early(survey, early_steps(units, self.spec.early))
        return with_fields(
            plan,
            sites=tuple(proxies),
            bases=tuple(Packed.of(each.basis) for each in proxies.values()),
            centres=tuple(Packed.of(each.centre) for each in proxies.values()),
            shares=tuple(Packed.of(each.shares) for each in proxies.values()),
        )

    def _fit_early(self, plan: TangentPlan, units: Sequence[Checkpoint]) -> dict[str, Proxy]:
        """Return proxies of the activations of several checkpoints, taken together."""
        pooled, worker = Survey(), None
        nowhere = Scratch(Path, 0, 0)  # nothing is written there
        silent = Ticks(lambda _rows: None, self.notify.tell)
        for number, unit in enumerate(units, start=1):
            self.notify.tell(f"fitting the proxy: checkpoint {number} of {len(units)}")
            try:
                worker = self.open_step(unit, Notify())
            except IsoscopeError as error:
                if not self.load.skip_broken:
                    raise name_checkpoint(unit, error) from error
                continue
            worker.enter(plan, 0, None)
            for part in plan.stages[0]:
                pooled.merge(worker.run(part, nowhere, silent))
        assert worker is not None
        return worker.fit(State(pooled))

    # --- units ------------------------------------------------------------------------------
    def open_step(self, unit: Checkpoint, notify: Notify) -> TangentWorker:
        """Return the worker of one checkpoint, over documents that others have tokenised."""
        live = {"model": self.take(unit), "corpus": self.corpus}
        shared = _shared(self.planned) if isinstance(self.planned, TangentSeriesPlan) else {}
        spec = TangentSpec(**asdict(self.spec))
        return TangentWorker(spec, notify, live, self.tokens, shared or None)

    def read_step(
        self, unit: Checkpoint, worker: TangentWorker, scratch: Scratch, ticks: Ticks
    ) -> StepRecord:
        """Read the gradients of one checkpoint, its concepts, and its own proxy."""
        self._check_like(worker, unit)
        assert isinstance(self.planned, TangentSeriesPlan)
        plan, identity = self.planned.survey, worker.subject.loaded.identity
        options, spreads = self.spec.options_of_measures(), Spreads()
        with SpareFolder() as spare:
            states = do_stages(worker, plan, scratch, ticks, str(identity["sha"]), Path(spare))
            state = states[-1]  # of gradients; that of activations has served
            found = read_state(state, plan.names, "", options, plan.sites, spreads)
            concepts = [c for site in plan.sites for c in concepts_of(state.survey_of(site))]
        bases = (
            BasisParts(site=site, rank=each.rank, basis=Numbers.of(each.basis.ravel()))
            for site, each in worker.own.items()
        )
        parts = pack_spreads(unit, spreads)
        return StepRecord(
            step=unit.step,
            name=unit.name,
            identity=identity,
            fingerprint=self.print_of(unit.step),
            readings=[replace(each, step=unit.step) for each in (*found, *worker.distances)],
            parts=with_fields(parts, concepts=tuple(concepts), bases=tuple(bases)),
            left_out=list(found.left_out),
            trouble=dict(found.trouble),
        )

    def _check_like(self, worker: TangentWorker, unit: Checkpoint) -> None:
        """Refuse a checkpoint of another model, or with another tokenizer."""
        assert isinstance(self.planned, TangentSeriesPlan)
        ours, theirs = self.planned.widths, _widths(worker)
        for site in dict.fromkeys((*ours, *theirs)):
            if ours.get(site) != theirs.get(site):
                words = [f"of width {each.get(site, 'none')}" for each in (ours, theirs)]
                raise other_shape(self.planned.first, unit.name, f"{site} {words[0]}", words[1])
        self.check_vocabulary(worker.subject, unit)

    # --- the end ----------------------------------------------------------------------------
    def finish(self, done: Finished) -> Results[Reading]:
        """Return the readings of all steps, and write the run where there is a target."""
        plan, records = done.plan_as(TangentSeriesPlan), self.read_records(done)
        remarks = (*plan.survey.drawn.warnings, *done.notes)
        readings = self.join_readings(done, records, remarks)
        run = next((each.run for each in readings), "")
        readings.extend(replace(each, run=run) for each in read_angles(plan, records))
        if done.target is not None:
            # The proxies of steps have been compared by now.
            parts = (with_fields(e.parts, bases=()) for e in records if e.parts is not None)
            self.save_series(
                done,
                records,
                readings,
                SeriesParts(steps=tuple(parts)),
                settings=self.spec.options_of_measures(),
            )
        return tangent_results(readings)


def read_angles(plan: TangentSeriesPlan, records: Sequence[StepRecord]) -> list[Reading]:
    """Return the angle of every direction to the proxy of the checkpoint before."""
    shared = {site: each.basis for site, each in _shared(plan).items()}
    found: list[Reading] = []
    for before, now in pairwise(records):
        first, own = _bases(before), _bases(now)
        like = {each.site: each for each in now.readings}
        for site in (each for each in own if each in like and each in first):
            angles = matches(shared.get(site, own[site]), first[site])
            plain = replace(like[site], measure=ANGLE, low=None, high=None, warnings=())
            found += [
                replace(plain, group=direction_name(number), value=float(angle))
                for number, angle in enumerate(angles)
            ]
    return found


def early_steps(units: Sequence[Checkpoint], share: float) -> list[Checkpoint]:
    """Return the checkpoints of an early share of training, few of them and evenly spread.

    A step counts by its number: of steps up to 1,000, 30 % are those up to 300.
    """
    whole = sorted((each for each in units if not each.broken), key=lambda each: each.step)
    last = whole[-1].step
    early = [each for each in whole if each.step <= share * last] or whole[:1]
    chosen = np.unique(np.linspace(0, len(early) - 1, min(EARLY, len(early))).round())
    return [early[int(place)] for place in chosen]


def _shared(plan: TangentSeriesPlan) -> dict[str, Proxy]:
    """Return the proxies that all checkpoints share; none where each has its own."""
    parts = zip(plan.sites, plan.bases, plan.centres, plan.shares, strict=True)
    return {
        site: Proxy(basis.array, centre.array, share.array)
        for site, basis, centre, share in parts
    }


def _widths(worker: TangentWorker) -> dict[str, int]:
    return {site: worker.sites.widths[site] for site in worker.chosen}


def _bases(record: StepRecord) -> dict[str, Array]:
    return {} if record.parts is None else {e.site: e.array for e in record.parts.bases}

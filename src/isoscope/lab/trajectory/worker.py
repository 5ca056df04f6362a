"""The worker of `isoscope trajectory`: checkpoints surveyed one after the other."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec

from isoscope.accumulate import Moments, accumulator_of
from isoscope.accumulate.survey import variants
from isoscope.capture.model.folder import sha_of_files
from isoscope.display import Results
from isoscope.engine import Notify, Scratch, Ticks
from isoscope.errors import (
    TooFewRowsError,
    UndefinedError,
)
from isoscope.lab.trajectory.changes import StepReadings, find_courses, missing_somewhere
from isoscope.lab.trajectory.checkpoint import CheckpointWorker
from isoscope.lab.trajectory.metrics import read_metrics
from isoscope.lab.trajectory.results import CORRECTED, COURSES, Course
from isoscope.lab.trajectory.spec import TrajectoryPlan, TrajectorySpec
from isoscope.lab.trajectory.theories import Theories
from isoscope.measures.view.spectrum import effective_rows, spectrum_curve
from isoscope.site import Site, is_matrix
from isoscope.store.atomic import SpareFolder
from isoscope.store.series import (
    MetricCurve,
    SeriesParts,
    SpectrumPoints,
)
from isoscope.store.state import State
from isoscope.study.checkpoints import (
    SeriesWorker,
    StepRecord,
    pack_spreads,
    unpack_spreads,
)
from isoscope.study.measure_choice import read_state
from isoscope.study.reading import Spreads
from isoscope.study.run import Finished, Live, Planner
from isoscope.study.series import Checkpoint
from isoscope.study.survey import SurveyPlan
from isoscope.types import Reading

LOSS = "loss"
POINTS = 20  # of a spectrum: there is one per site and step
MODEL = "model"  # the site of what is read of a model as a whole


class TrajectoryWorker(
    SeriesWorker[TrajectorySpec, CheckpointWorker], Planner[Results[Course]]
):
    """An open corpus, and checkpoints that are loaded one ahead of the one that runs."""

    def __init__(self, spec: TrajectorySpec, notify: Notify, live: Live) -> None:
        spec.reads.names(text=True)  # a misspelt name, before a model is loaded
        super().__init__(spec, spec.load, notify, live)
        self.metrics: list[MetricCurve] = []
        if spec.metrics is not None:
            self.metrics = read_metrics(spec.metrics, [each.step for each in self.checkpoints])

    def content(self) -> dict[str, str]:
        """Return fingerprints of what all checkpoints share; units have those of their own."""
        found = super().content()
        for name, path in (("metrics", self.spec.metrics), ("table", self.spec.frequencies)):
            if path is not None:
                found[name] = sha_of_files([Path(path).expanduser()])
        return found

    def plan(self) -> TrajectoryPlan:
        """Draw and tokenise documents once; one unit per checkpoint, broken ones last."""
        units, first, worker = self.open_first()
        survey = worker.plan(check_loss=False)
        self.tokens.keep(worker.prepared)
        self.hold(first, worker.subject)
        return TrajectoryPlan(
            stages=(units,),
            threads=survey.threads,
            survey=survey,
            widths=dict(worker.subject.sites.widths),
            vocabulary=str(worker.subject.loaded.identity["tokenizer"]),
            first=first.name,
        )

    # --- units ----------------------------------------------------------------------------
    def open_step(self, unit: Checkpoint, notify: Notify) -> CheckpointWorker:
        """Return the worker of one checkpoint, loaded now or while the last one ran."""
        live = {"model": self.take(unit), "corpus": self.corpus}
        return CheckpointWorker(self.spec.survey_of(unit.where), notify, live, self.tokens)

    def read_step(
        self, unit: Checkpoint, worker: CheckpointWorker, scratch: Scratch, ticks: Ticks
    ) -> StepRecord:
        """Survey one checkpoint: its readings, and what their intervals are made of."""
        assert isinstance(self.planned, TrajectoryPlan)
        plan = self.planned.survey
        worker.check_like(self.planned, unit)
        self.check_vocabulary(worker.subject, unit)
        identity = worker.subject.loaded.identity
        with SpareFolder() as spare:
            state = worker.survey(plan, scratch, ticks, str(identity["sha"]), Path(spare))
            spreads: Spreads = {}
            options = self.spec.reads.options(documents=True)
            found = read_state(state, plan.names, "", options, plan.sites, spreads)
            more, problems = self._more(worker, state, plan)
            there = {(each.site, each.measure) for each in found}
            readings = [
                *found,
                *(e for e in more if e.group or (e.site, e.measure) not in there),
            ]
            spectra = tuple(_spectra(state, plan.sites))
        return StepRecord(
            step=unit.step,
            name=unit.name,
            identity=identity,
            fingerprint=self.print_of(unit.step),
            readings=[replace(each, step=unit.step) for each in readings],
            parts=pack_spreads(unit, spreads, spectra),
            left_out=[*found.left_out, *problems],
            trouble=dict(found.trouble),
        )

    def _more(
        self, worker: CheckpointWorker, state: State, plan: SurveyPlan
    ) -> tuple[list[Reading], list[str]]:
        """Return the loss, and what older theories are about."""
        found: list[Reading] = []
        loss = worker.find_loss(worker.in_draw_order(plan), plan.drawn.rows)
        if loss is not None:
            value, n = loss.surveyed, loss.tokens
            found.append(Reading("", MODEL, "all", "", None, LOSS, value, None, None, n, 1))
        if self.spec.no_theories:
            return found, []
        theories = Theories(
            worker.subject,
            state,
            plan.counts.array,
            lambda site, count: worker.sample_rows(plan, site, count),
        ).read()
        return [*found, *theories.found], theories.problems

    # --- the end --------------------------------------------------------------------------
    def finish(self, done: Finished) -> Results[Course]:
        """Return what changes when, and write the run where there is a target."""
        plan = done.plan_as(TrajectoryPlan)
        records = self.read_records(done)
        steps = [
            StepReadings(each.step, each.readings, dict(unpack_spreads(each.parts)))
            for each in records
        ]
        courses = find_courses(steps, self.metrics)
        remarks = [*plan.survey.drawn.warnings, *done.notes, CORRECTED]
        readings = self.join_readings(done, records, remarks)
        readings.left_out = (*readings.left_out, *missing_somewhere(steps))
        results = Results(
            courses,
            COURSES,
            remarks=remarks,
            left_out=readings.left_out,
            trouble=readings.trouble,
            shared={
                "series": self.series_name,
                "checkpoints": len(records),
                "first": records[0].step,
                "last": records[-1].step,
            },
        )
        if done.target is not None:
            parts = SeriesParts(
                steps=tuple(each.parts for each in records if each.parts is not None),
                metrics=(*self.metrics, *_loss_curve(records)),
                lines=tuple(msgspec.to_builtins(each.to_dict()) for each in results),
            )
            self.save_series(
                done,
                records,
                readings,
                parts,
                settings=self.spec.reads.options(documents=True),
                identity={"layers": _layers(plan.widths)},
            )
        return results


def _spectra(state: State, sites: Sequence[str]) -> Iterator[SpectrumPoints]:
    """Yield the spectrum of every site that is not a matrix."""
    for site in state.sites_in(sites):
        if is_matrix(site):
            continue
        for _, alike, here in variants(state.survey_of(site).held):
            if "all" not in alike or Moments not in here:
                continue
            with suppress(TooFewRowsError, UndefinedError):
                moments = accumulator_of(here, Moments).finalize()
                rows = effective_rows(moments)
                curve = spectrum_curve(moments, rows, site, points=POINTS)
                yield SpectrumPoints(
                    site=site,
                    rank=tuple(int(each) for each in curve.rank),
                    value=tuple(float(each) for each in curve.value),
                    isotropic=tuple(float(each) for each in curve.isotropic),
                    rows=curve.rows,
                )


def _loss_curve(records: Sequence[StepRecord]) -> list[MetricCurve]:
    """Return the loss over steps, where the model has one."""
    found = [
        (record.step, each.value)
        for record in records
        for each in record.readings
        if (each.site, each.measure) == (MODEL, LOSS)
    ]
    if len(found) < 2:
        return []
    steps, values = zip(*found, strict=True)
    return [MetricCurve(name="loss on the corpus", steps=steps, values=values)]


def _layers(widths: Mapping[str, int]) -> dict[str, int]:
    """Return how many layers each family of sites has."""
    counts: dict[str, int] = {}
    for site in map(Site.parse, widths):
        if site.layer is not None and site.head is None:
            counts[site.group] = max(counts.get(site.group, 0), site.layer + 1)
    return counts

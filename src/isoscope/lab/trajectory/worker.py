"""The worker of `isoscope trajectory`: checkpoints surveyed one after the other."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import msgspec
from msgspec.structs import replace as with_fields

from isoscope.accumulate import Moments, accumulator_of
from isoscope.accumulate.survey import Survey, variants
from isoscope.capture.model.folder import sha_of_files
from isoscope.capture.runner import threads
from isoscope.display import READINGS, Results
from isoscope.engine import Notify, Scratch, Ticks
from isoscope.errors import (
    IsoscopeError,
    RowError,
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
from isoscope.store import new_origin, save
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
    name_checkpoint,
    pack_spreads,
    unpack_spreads,
)
from isoscope.study.measure_choice import read_state
from isoscope.study.model import ModelSites, open_documents, open_model
from isoscope.study.reading import Spreads
from isoscope.study.run import Finished, Live, Planner
from isoscope.study.series import Checkpoint
from isoscope.study.survey import SurveyPlan
from isoscope.types import Reading

LOSS = "loss"
POINTS = 20  # of a spectrum: there is one per site and step
MODEL = "model"  # the site of what is read of a model as a whole


class TrajectoryWorker(SeriesWorker, Planner[Results[Course]]):
    """An open corpus, and checkpoints that are loaded one ahead of the one that runs."""

    def __init__(self, spec: TrajectorySpec, notify: Notify, live: Live) -> None:
        self.spec = spec
        spec.reads.names(text=True)  # a misspelt name, before a model is loaded
        super().__init__(spec.load.series, spec.load.revisions, notify)
        self.metrics: list[MetricCurve] = []
        if spec.metrics is not None:
            self.metrics = read_metrics(spec.metrics, [each.step for each in self.checkpoints])
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
        self.planned: TrajectoryPlan | None = None

    # --- the plan -------------------------------------------------------------------------
    def content(self) -> dict[str, str]:
        """Return fingerprints of what all checkpoints share; units have those of their own."""
        load = self.spec.load
        found = self.series_content(load.dtype, code=load.trust_remote_code)
        found["corpus"] = f"{self.corpus.name} {self.corpus.fingerprint}"
        for name, path in (("metrics", self.spec.metrics), ("table", self.spec.frequencies)):
            if path is not None:
                found[name] = sha_of_files([Path(path).expanduser()])
        return found

    def plan(self) -> TrajectoryPlan:
        """Draw and tokenise documents once; one unit per checkpoint, broken ones last."""
        units = self.units()  # before anything is downloaded
        first, worker = self.open_first(
            lambda each: self._surveying(each, self.notify), skip=self.spec.skip_broken
        )
        survey = worker.plan(check_loss=False)
        self.tokens.keep(worker.prepared)
        widths = worker.subject.sites.widths
        vocabulary = str(worker.subject.loaded.identity["tokenizer"])
        self.hold(first, worker.subject)
        return TrajectoryPlan(
            stages=(units,),
            threads=survey.threads,
            survey=survey,
            widths=dict(widths),
            vocabulary=vocabulary,
            first=first.name,
        )

    # --- units ----------------------------------------------------------------------------
    def enter(self, plan: object, _stage: int, _before: State | None, /) -> None:
        """Take the plan."""
        assert isinstance(plan, TrajectoryPlan)
        self.planned = plan

    def run(self, unit: object, scratch: Scratch, ticks: Ticks, /) -> StepRecord:
        """Survey one checkpoint, and return its readings and what their intervals are made of.

        One that cannot be loaded is an error that names it; the others are kept.
        """
        assert isinstance(unit, Checkpoint)
        try:
            return self._measure(unit, scratch, ticks)
        except BaseException:
            self.settle()  # the error would be lost
            raise

    def _measure(self, unit: Checkpoint, scratch: Scratch, ticks: Ticks) -> StepRecord:
        assert self.planned is not None
        try:
            worker = self._surveying(unit)
        except IsoscopeError as error:
            if not self.spec.skip_broken:
                raise name_checkpoint(unit, error) from error
            ticks.note(f"skipped {unit.name}, which cannot be loaded: {error.problem}")
            return StepRecord(step=unit.step, name=unit.name, problem=error.problem)
        with threads(self.planned.threads):
            try:
                found = self._survey(unit, worker, scratch, ticks)
            except RowError as error:  # no site has a number: training may have diverged
                ticks.note(f"skipped {unit.name}: {error.problem}")
                return StepRecord(step=unit.step, name=unit.name, problem=error.problem)
        if self.spec.load.free:
            self.remove(unit, found.identity)
        return found

    def _survey(
        self, unit: Checkpoint, worker: CheckpointWorker, scratch: Scratch, ticks: Ticks
    ) -> StepRecord:
        assert self.planned is not None
        plan = self.planned.survey
        worker.check_like(self.planned, unit)
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

    # --- loading --------------------------------------------------------------------------
    def _load(self, unit: Checkpoint) -> ModelSites:
        spec = self.spec
        return open_model(
            spec.load.model(unit.where),
            device_map=spec.device_map,
            untrained=spec.untrained,
            seed=spec.draw.seed,
            say=self.notify.say,
        )

    def _surveying(self, unit: Checkpoint, notify: Notify | None = None) -> CheckpointWorker:
        """Return the worker of one checkpoint, loaded now or while the last one ran."""
        live = {"model": self.take(unit), "corpus": self.corpus}
        spec = self.spec.survey_of(unit.where)
        return CheckpointWorker(spec, notify or Notify(), live, self.tokens)

    # --- the end --------------------------------------------------------------------------
    def finish(self, done: Finished) -> Results[Course]:
        """Return what changes when, and write the run where there is a target."""
        self.pool.shutdown(cancel_futures=True)
        plan = done.plan_as(TrajectoryPlan)
        every = msgspec.convert(done.records, list[StepRecord])
        self.check_unchanged(every, done)
        records = sorted((each for each in every if not each.problem), key=lambda e: e.step)
        if len(records) < 2:
            raise UndefinedError(
                f"a trajectory needs at least 2 checkpoints that can be measured, got "
                f"{len(records)}",
                hint="replace the checkpoints that are damaged, or hold NaN or infinity",
                slug="series-one",
            )
        name = done.target.name if done.target is not None else self.series_name
        steps = [
            StepReadings(each.step, each.readings, dict(unpack_spreads(each.parts)))
            for each in records
        ]
        courses = find_courses(steps, self.metrics)
        remarks = [*plan.survey.drawn.warnings, *done.notes, CORRECTED]
        left_out = list(dict.fromkeys(text for each in records for text in each.left_out))
        left_out += missing_somewhere(steps)
        trouble = {
            f"{site} of {each.name}": why
            for each in records
            for site, why in each.trouble.items()
        }
        results = Results(
            courses,
            COURSES,
            remarks=remarks,
            left_out=left_out,
            trouble=trouble,
            shared={
                "series": self.series_name,
                "checkpoints": len(records),
                "first": records[0].step,
                "last": records[-1].step,
            },
        )
        if done.target is not None:
            self._save(done, plan, records, results, name)
        return results

    def _save(
        self,
        done: Finished,
        plan: TrajectoryPlan,
        records: list[StepRecord],
        results: Results[Course],
        name: str,
    ) -> None:
        spec, survey = self.spec, plan.survey
        readings = Results(
            [replace(each, run=name) for record in records for each in record.readings],
            READINGS,
            left_out=results.left_out,
        )
        shas = "\n".join(str(each.identity.get("sha")) for each in records)
        identity = {
            **records[-1].identity,
            "model": self.series_name,
            "sha": blake2b(shas.encode(), digest_size=32).hexdigest(),
            "layers": _layers(plan.widths),
        }
        origin = new_origin(
            sources=[with_fields(survey.drawn, warnings=tuple(results.remarks), units=done.id)],
            settings={
                **spec.settings(),
                **spec.reads.options(documents=True),
                "measures": list(survey.names),
                "sites": list(survey.sites),
                "known_by": None if self.corpus.has_ids else "content",
                "checkpoints": [
                    {"step": e.step, "name": e.name, "sha": e.identity.get("sha")}
                    for e in records
                ],
            },
            seed=spec.draw.seed,
            kind="trajectory",
            model=identity,
        )
        series = SeriesParts(
            steps=tuple(each.parts for each in records if each.parts is not None),
            metrics=(*self.metrics, *_loss_curve(records)),
            lines=tuple(msgspec.to_builtins(each.to_dict()) for each in results),
        )
        flags = spec.to_config(absolute=True) | {"threads": plan.threads}
        save(
            done.target or "",
            State(Survey()),
            readings,
            origin,
            {"trajectory": flags},
            done.overwrite,
            resume=True,
            series=series.encode(),
        )


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

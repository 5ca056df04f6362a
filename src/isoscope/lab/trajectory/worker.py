"""The worker of `isoscope trajectory`: checkpoints surveyed one after the other."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import msgspec
from msgspec.structs import replace as with_fields

from isoscope.accumulate import Moments, accumulator_of
from isoscope.accumulate.survey import Survey, variants
from isoscope.capture.model.folder import sha_of_files
from isoscope.capture.model.hub import (
    COMMIT,
    find_revisions,
    is_downloaded,
    remove_download,
)
from isoscope.capture.model.network import find_dtype
from isoscope.capture.model.tokenizer import tokenizer_files
from isoscope.capture.runner import threads
from isoscope.display import READINGS, Results
from isoscope.engine import Notify, Scratch, Ticks
from isoscope.errors import (
    IsoscopeError,
    ResumeError,
    RowError,
    TooFewRowsError,
    UndefinedError,
)
from isoscope.lab.trajectory.changes import StepReadings, find_courses, missing_somewhere
from isoscope.lab.trajectory.checkpoint import CheckpointWorker, KeptDocuments
from isoscope.lab.trajectory.metrics import read_metrics
from isoscope.lab.trajectory.results import CORRECTED, COURSES, Course
from isoscope.lab.trajectory.series import (
    CheckpointFiles,
    check_alike,
    find_checkpoints,
    is_on_hub,
    locate_files,
    read_files,
)
from isoscope.lab.trajectory.spec import Checkpoint, TrajectoryPlan, TrajectorySpec
from isoscope.lab.trajectory.theories import Theories
from isoscope.measures.interval import Spread
from isoscope.measures.view.spectrum import effective_rows, spectrum_curve
from isoscope.registry import unknown
from isoscope.site import Site, is_matrix
from isoscope.store import new_origin, save
from isoscope.store.atomic import SpareFolder
from isoscope.store.series import (
    GroupParts,
    MetricCurve,
    Numbers,
    SeriesParts,
    SpectrumPoints,
    StepParts,
)
from isoscope.store.state import State
from isoscope.study.measure_choice import read_state
from isoscope.study.model import ModelSites, open_documents, open_model
from isoscope.study.reading import Spreads
from isoscope.study.run import Finished, Live, Planner
from isoscope.study.survey import SurveyPlan
from isoscope.types import Reading

LOSS = "loss"
POINTS = 20  # of a spectrum: there is one per site and step
MODEL = "model"  # the site of what is read of a model as a whole


class StepRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What one checkpoint gave."""

    step: int
    name: str
    identity: dict[str, object] = {}
    fingerprint: str = ""  # of its weight files
    readings: list[Reading] = []
    parts: StepParts | None = None
    left_out: list[str] = []
    trouble: dict[str, str] = {}
    problem: str = ""  # why it was skipped


class TrajectoryWorker(Planner[Results[Course]]):
    """An open corpus, and checkpoints that are loaded one ahead of the one that runs."""

    def __init__(self, spec: TrajectorySpec, notify: Notify, live: Live) -> None:
        self.spec, self.notify = spec, notify
        spec.reads.names(text=True)  # a misspelt name, before a model is loaded
        self.checkpoints = find_checkpoints(spec)
        self._check_revisions()
        self.files = {each.step: read_files(each.where) for each in self.checkpoints}
        check_alike([(each, self.files[each.step]) for each in self.checkpoints])
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
        self.loading: dict[str, Future[ModelSites]] = {}
        self.pool = ThreadPoolExecutor(1)
        self.tokens = KeptDocuments()
        self.planned: TrajectoryPlan | None = None

    # --- the plan -------------------------------------------------------------------------
    def content(self) -> dict[str, str]:
        """Return fingerprints of what all checkpoints share; units have those of their own."""
        first = self._first
        folder = locate_files(
            first.where,
            code=self.spec.load.trust_remote_code,
            weights=False,
            say=self.notify.tell,
        ).folder
        found = {
            "steps": ",".join(str(each.step) for each in self.checkpoints),
            "dtype": str(find_dtype(self.spec.load.dtype)),
            "corpus": f"{self.corpus.name} {self.corpus.fingerprint}",
        }
        config = folder / "config.json"
        if folder.is_dir() and config.is_file():
            found["model config"] = sha_of_files([config])
            found["tokenizer"] = sha_of_files(tokenizer_files(folder))
        for name, path in (("metrics", self.spec.metrics), ("table", self.spec.frequencies)):
            if path is not None:
                found[name] = sha_of_files([Path(path).expanduser()])
        return found

    @property
    def _first(self) -> Checkpoint:
        """The first checkpoint that is whole, as far as its files tell."""
        whole = [each for each in self.checkpoints if not self._problem(each)]
        return whole[0] if whole else self.checkpoints[0]

    def _problem(self, each: Checkpoint) -> str:
        files = self.files[each.step]
        return "" if files is None else files.problem

    def plan(self) -> TrajectoryPlan:
        """Draw and tokenise documents once; one unit per checkpoint, broken ones last."""
        units = [
            with_fields(
                each,
                broken=bool(self._problem(each)),
                downloaded=is_on_hub(each.where) and is_downloaded(*_hub_name(each.where)),
            )
            for each in self.checkpoints
        ]
        first, worker = self._open_first()
        survey = worker.plan(check_loss=False)
        self.tokens.keep(worker.prepared)
        widths = worker.subject.sites.widths
        vocabulary = str(worker.subject.loaded.identity["tokenizer"])
        self._hold(first, worker.subject)
        return TrajectoryPlan(
            stages=(tuple(sorted(units, key=lambda each: each.broken)),),
            threads=survey.threads,
            survey=survey,
            widths=dict(widths),
            vocabulary=vocabulary,
            first=first.name,
        )

    def _open_first(self) -> tuple[Checkpoint, CheckpointWorker]:
        """Return the first checkpoint that can be loaded; --skip-broken goes on to the next."""
        whole = [each for each in self.checkpoints if not self._problem(each)]
        *others, last = whole or self.checkpoints[:1]
        for each in (*others, last):
            try:
                return each, self._surveying(each, self.notify)
            except IsoscopeError as error:
                if each is last or not self.spec.skip_broken:
                    raise _named(each, error) from error
        raise AssertionError("a series has a checkpoint")

    def _check_revisions(self) -> None:
        """Refuse revisions that the hub does not have, before anything is downloaded."""
        if self.spec.load.revisions is None:
            return
        name = self.spec.load.series[0]
        known: set[str] | None = None
        for each in self.checkpoints:
            revision = _hub_name(each.where)[1]
            if COMMIT.fullmatch(revision) or is_downloaded(name, revision):
                continue
            known = find_revisions(name) if known is None else known
            if known is None:
                return
            if revision not in known:
                error = unknown("revision", revision, sorted(known))
                raise IsoscopeError(
                    f"{name} is on the hub, but no revision of it is called {revision!r}",
                    hint=f"{error.hint}; look up its branches and tags, or leave it out",
                    slug="hub-revision",
                )

    # --- units ----------------------------------------------------------------------------
    def enter(self, plan: object, _stage: int, _before: State | None, /) -> None:
        """Take the plan."""
        assert isinstance(plan, TrajectoryPlan)
        self.planned = plan

    def prepare(self, unit: object, /) -> None:
        """Load a checkpoint while another one is measured."""
        assert isinstance(unit, Checkpoint)
        if unit.where not in self.loading and not unit.broken:
            self.loading[unit.where] = self.pool.submit(self._load, unit)

    def run(self, unit: object, scratch: Scratch, ticks: Ticks, /) -> StepRecord:
        """Survey one checkpoint, and return its readings and what their intervals are made of.

        One that cannot be loaded is an error that names it; the others are kept.
        """
        assert isinstance(unit, Checkpoint)
        try:
            return self._measure(unit, scratch, ticks)
        except BaseException:
            # While a model is loaded nothing is printed: the error would be lost.
            wait(self.loading.values())
            raise

    def _measure(self, unit: Checkpoint, scratch: Scratch, ticks: Ticks) -> StepRecord:
        assert self.planned is not None
        try:
            worker = self._surveying(unit)
        except IsoscopeError as error:
            if not self.spec.skip_broken:
                raise _named(unit, error) from error
            ticks.note(f"skipped {unit.name}, which cannot be loaded: {error.problem}")
            return StepRecord(step=unit.step, name=unit.name, problem=error.problem)
        with threads(self.planned.threads):
            try:
                found = self._survey(unit, worker, scratch, ticks)
            except RowError as error:  # no site has a number: training may have diverged
                ticks.note(f"skipped {unit.name}: {error.problem}")
                return StepRecord(step=unit.step, name=unit.name, problem=error.problem)
        if self.spec.load.free and not unit.downloaded and is_on_hub(unit.where):
            remove_download(_hub_name(unit.where)[0], str(found.identity.get("revision") or ""))
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
            fingerprint=_print_of(self.files[unit.step]),
            readings=[replace(each, step=unit.step) for each in readings],
            parts=_parts(unit, spreads, spectra),
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

    def _hold(self, unit: Checkpoint, subject: ModelSites) -> None:
        """Keep a model that is loaded until its unit comes."""
        held: Future[ModelSites] = Future()
        held.set_result(subject)
        self.loading = {unit.where: held}

    def _surveying(self, unit: Checkpoint, notify: Notify | None = None) -> CheckpointWorker:
        """Return the worker of one checkpoint, loaded now or while the last one ran."""
        waiting = self.loading.pop(unit.where, None)
        subject = self._load(unit) if waiting is None else waiting.result()
        live = {"model": subject, "corpus": self.corpus}
        spec = self.spec.survey_of(unit.where)
        return CheckpointWorker(spec, notify or Notify(), live, self.tokens)

    # --- the end --------------------------------------------------------------------------
    def finish(self, done: Finished) -> Results[Course]:
        """Return what changes when, and write the run where there is a target."""
        self.pool.shutdown(cancel_futures=True)
        plan = done.plan_as(TrajectoryPlan)
        every = msgspec.convert(done.records, list[StepRecord])
        self._check_unchanged(every, done)
        records = sorted((each for each in every if not each.problem), key=lambda e: e.step)
        if len(records) < 2:
            raise UndefinedError(
                f"a trajectory needs at least 2 checkpoints that can be measured, got "
                f"{len(records)}",
                hint="replace the checkpoints that are damaged, or hold NaN or infinity",
                slug="series-one",
            )
        name = done.target.name if done.target is not None else self._name
        steps = [
            StepReadings(each.step, each.readings, dict(_spreads(each.parts)))
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
                "series": self._name,
                "checkpoints": len(records),
                "first": records[0].step,
                "last": records[-1].step,
            },
        )
        if done.target is not None:
            self._save(done, plan, records, results, name)
        return results

    @property
    def _name(self) -> str:
        first = self.spec.load.series[0]
        if is_on_hub(first):
            return first.partition("@")[0]
        several = len(self.spec.load.series) > 1
        path = Path(first).expanduser().resolve()
        return path.parent.name if several else path.name

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
            "model": self._name,
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

    def _check_unchanged(self, records: Iterable[StepRecord], done: Finished) -> None:
        """Refuse records of checkpoints that are not those in the folders now."""
        for each in records:
            now = _print_of(self.files.get(each.step))
            if each.fingerprint and now and each.fingerprint != now:
                raise ResumeError(
                    f"cannot finish {done.target.name if done.target else 'the run'!r}: the "
                    f"checkpoint {each.name} was replaced after it was measured",
                    hint="begin again with --overwrite, or choose another folder",
                    slug="resume-other",
                )


def _print_of(files: CheckpointFiles | None) -> str:
    return "" if files is None else files.fingerprint


def _hub_name(where: str) -> tuple[str, str]:
    """Return the name and the revision of a checkpoint on the hub."""
    name, _, revision = where.partition("@")
    return name, revision or "main"


def _named(unit: Checkpoint, error: IsoscopeError) -> IsoscopeError:
    """Return the error of a checkpoint that cannot be measured, which names it."""
    return type(error)(
        f"cannot load the checkpoint {unit.name} of step {unit.step}: {error.problem}",
        hint=f"{error.hint}; the others are kept, and the same command resumes with this one, "
        "or goes without it with --skip-broken",
        slug=error.slug,
    )


def _parts(
    unit: Checkpoint, spreads: Spreads, spectra: tuple[SpectrumPoints, ...]
) -> StepParts:
    """Return what a step's intervals are made of, as a file holds it."""
    keys: dict[bytes, int] = {}
    parts = tuple(
        GroupParts(
            site=site,
            variant=variant,
            measure=measure,
            keys=keys.setdefault(each.keys.astype("<u8").tobytes(), len(keys)),
            parts=Numbers.of(each.parts),
            lost=each.lost,
            centre=each.centre,
            correction=each.correction,
        )
        for (site, variant, measure), each in sorted(spreads.items())
    )
    lists = tuple(Numbers("<u8", data) for data in keys)
    return StepParts(step=unit.step, name=unit.name, keys=lists, parts=parts, spectra=spectra)


def _spreads(parts: StepParts | None) -> Iterator[tuple[tuple[str, str, str], Spread]]:
    """Yield the spreads of a step by site, variant and measure."""
    if parts is None:
        return
    for each in parts.parts:
        where = each.site, each.variant, each.measure
        yield (
            where,
            Spread(
                each.parts.array,
                parts.keys[each.keys].array,
                each.lost,
                centre=each.centre,
                correction=each.correction,
            ),
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

"""Checkpoints of a series as units of work: loaded one ahead, and what is kept of each."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace as with_run
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from isoscope.accumulate.survey import Survey
from isoscope.display import READINGS, Results
from isoscope.engine import Notify, Scratch, Ticks
from isoscope.engine.allocator import trim
from isoscope.engine.plan import Plan
from isoscope.errors import IsoscopeError, ResumeError, RowError, UndefinedError
from isoscope.measures.interval import Spread
from isoscope.registry import unknown
from isoscope.store import new_origin, save
from isoscope.store.keepers import SummaryKeeper
from isoscope.store.series import GroupParts, Numbers, SeriesParts, SpectrumPoints, StepParts
from isoscope.store.state import State
from isoscope.study.documents import DocumentsSpec, KeptDocuments, run_settings
from isoscope.study.model import ModelSites, open_documents, open_model
from isoscope.study.reading import Spreads
from isoscope.study.run import Finished, Live
from isoscope.study.series import (
    ONE,
    Checkpoint,
    CheckpointFiles,
    check_alike,
    find_checkpoints,
    hub_name,
    is_on_hub,
    locate_files,
    other_vocabulary,
    read_files,
)
from isoscope.study.series_spec import SeriesLoadSpec, SeriesPlan
from isoscope.types import Reading

S = TypeVar("S", bound=DocumentsSpec[object])
W = TypeVar("W")
ROOM = 512 << 20  # bytes of summaries that stay in memory: there are those of one checkpoint


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


class SeriesWorker(ABC, Generic[S, W]):
    """The checkpoints of a series, loaded one ahead of the one that is measured.

    A subclass opens the worker of one checkpoint and makes a record of it.
    """

    def __init__(
        self,
        spec: S,
        load: SeriesLoadSpec,
        notify: Notify,
        live: Live,
        one: tuple[str, str] = ONE,
    ) -> None:
        self.spec, self.load, self.notify, self.one = spec, load, notify, one
        self.names, self.revisions = load.names, load.revisions
        self.checkpoints = find_checkpoints(self.names, self.revisions, one)
        self._check_revisions()
        self.files = {each.step: read_files(each.where) for each in self.checkpoints}
        check_alike([(each, self.files[each.step]) for each in self.checkpoints])
        self.loading: dict[str, Future[ModelSites]] = {}
        self.pool = ThreadPoolExecutor(1)
        self.tokens = KeptDocuments()
        self.corpus = open_documents(spec.read, live.get("corpus"), length=spec.length)
        self.planned: SeriesPlan | None = None

    @abstractmethod
    def open_step(self, unit: Checkpoint, notify: Notify) -> W:
        """Open the worker of one checkpoint, over documents that others have tokenised."""

    @abstractmethod
    def read_step(
        self, unit: Checkpoint, worker: W, scratch: Scratch, ticks: Ticks
    ) -> StepRecord:
        """Measure one checkpoint; a `RowError` is of one that holds no number."""

    @property
    def series_name(self) -> str:
        """What the series is called."""
        first = self.names[0]
        if is_on_hub(first):
            return first.partition("@")[0]
        path = Path(first).expanduser().resolve()
        return path.parent.name if len(self.names) > 1 else path.name

    # --- the plan -------------------------------------------------------------------------
    def content(self) -> dict[str, str]:
        """Return fingerprints of what all checkpoints share; units have those of their own."""
        from isoscope.capture.model.folder import sha_of_files
        from isoscope.capture.model.network import find_dtype
        from isoscope.capture.model.tokenizer import tokenizer_files

        load = self.load
        folder = locate_files(
            self.first.where, code=load.trust_remote_code, weights=False, say=self.notify.tell
        ).folder
        found = {
            "steps": ",".join(str(each.step) for each in self.checkpoints),
            "dtype": str(find_dtype(load.dtype)),
        }
        config = folder / "config.json"
        if folder.is_dir() and config.is_file():
            found["model config"] = sha_of_files([config])
            found["tokenizer"] = sha_of_files(tokenizer_files(folder))
        found["corpus"] = f"{self.corpus.name} {self.corpus.fingerprint}"
        return found

    @property
    def first(self) -> Checkpoint:
        """The first checkpoint that is whole, as far as its files tell."""
        whole = [each for each in self.checkpoints if not self._problem(each)]
        return whole[0] if whole else self.checkpoints[0]

    def open_first(self) -> tuple[tuple[Checkpoint, ...], Checkpoint, W]:
        """Return all units, and the first checkpoint that can be loaded, opened.

        With --skip-broken one that cannot is passed over.
        """
        units = self.units()  # before anything is downloaded
        whole = [each for each in self.checkpoints if not self._problem(each)]
        *others, last = whole or self.checkpoints[:1]
        for each in (*others, last):
            try:
                return units, each, self.open_step(each, self.notify)
            except IsoscopeError as error:
                if each is last or not self.load.skip_broken:
                    raise name_checkpoint(each, error) from error
        raise AssertionError("a series has a checkpoint")

    def _problem(self, each: Checkpoint) -> str:
        files = self.files[each.step]
        return "" if files is None else files.problem

    def units(self) -> tuple[Checkpoint, ...]:
        """Return one unit per checkpoint, broken ones last."""
        from isoscope.capture.model.hub import is_downloaded

        units = [
            replace(
                each,
                broken=bool(self._problem(each)),
                downloaded=is_on_hub(each.where) and is_downloaded(*hub_name(each.where)),
            )
            for each in self.checkpoints
        ]
        return tuple(sorted(units, key=lambda each: each.broken))

    def _check_revisions(self) -> None:
        """Refuse a revision that the hub does not have, before anything is downloaded."""
        from isoscope.capture.model.hub import COMMIT, find_revisions, is_downloaded

        if self.revisions is None:
            return
        name = self.names[0]
        known: set[str] | None = None
        for each in self.checkpoints:
            revision = hub_name(each.where)[1]
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

    # --- loading --------------------------------------------------------------------------
    def _load(self, unit: Checkpoint) -> ModelSites:
        spec = self.spec
        return open_model(
            self.load.checkpoint(unit.where),
            device_map=spec.device_map,
            untrained=spec.untrained,
            seed=spec.draw.seed,
            say=self.notify.say,
        )

    def prepare(self, unit: object, /) -> None:
        """Load a checkpoint while another one is measured."""
        assert isinstance(unit, Checkpoint)
        if unit.where not in self.loading and not unit.broken:
            self.loading[unit.where] = self.pool.submit(self._load, unit)

    def take(self, unit: Checkpoint) -> ModelSites:
        """Return a checkpoint, loaded now or while the last one ran."""
        waiting = self.loading.pop(unit.where, None)
        return self._load(unit) if waiting is None else waiting.result()

    def hold(self, unit: Checkpoint, subject: ModelSites) -> None:
        """Keep a model that is loaded until its unit comes."""
        held: Future[ModelSites] = Future()
        held.set_result(subject)
        self.loading = {unit.where: held}

    def settle(self) -> None:
        """Wait for what is being loaded: while that goes on, nothing can be printed."""
        wait(self.loading.values())

    def remove(self, unit: Checkpoint, identity: Mapping[str, object]) -> None:
        """Delete a checkpoint that was downloaded for this run."""
        from isoscope.capture.model.hub import remove_download

        if not unit.downloaded and is_on_hub(unit.where):
            remove_download(hub_name(unit.where)[0], str(identity.get("revision") or ""))

    # --- units ----------------------------------------------------------------------------
    def enter(self, plan: object, _stage: int, _before: State | None, /) -> None:
        """Take the plan."""
        assert isinstance(plan, SeriesPlan)
        self.planned = plan

    def run(self, unit: object, scratch: Scratch, ticks: Ticks, /) -> StepRecord:
        """Measure one checkpoint; one that cannot be loaded is named by its error."""
        assert isinstance(unit, Checkpoint)
        try:
            return self._measure(unit, scratch, ticks)
        except BaseException:
            self.settle()  # the error would be lost
            raise

    def _measure(self, unit: Checkpoint, scratch: Scratch, ticks: Ticks) -> StepRecord:
        from isoscope.capture.runner import threads

        assert self.planned is not None
        try:
            worker = self.open_step(unit, Notify())
        except IsoscopeError as error:
            if not self.load.skip_broken:
                raise name_checkpoint(unit, error) from error
            ticks.note(f"skipped {unit.name}, which cannot be loaded: {error.problem}")
            return StepRecord(step=unit.step, name=unit.name, problem=error.problem)
        try:
            with threads(self.planned.threads):
                found = self.read_step(unit, worker, scratch, ticks)
        except RowError as error:  # training may have diverged
            ticks.note(f"skipped {unit.name}: {error.problem}")
            return StepRecord(step=unit.step, name=unit.name, problem=error.problem)
        if self.load.free:
            self.remove(unit, found.identity)
        return found

    def check_vocabulary(self, subject: ModelSites, unit: Checkpoint) -> None:
        """Refuse a checkpoint with another tokenizer."""
        assert self.planned is not None
        if str(subject.loaded.identity["tokenizer"]) != self.planned.vocabulary:
            raise other_vocabulary(self.planned.first, unit.name)

    # --- the end --------------------------------------------------------------------------
    def read_records(self, done: Finished) -> list[StepRecord]:
        """Return the records of checkpoints that could be measured, by step."""
        self.pool.shutdown(cancel_futures=True)
        every = msgspec.convert(done.records, list[StepRecord])
        self._check_unchanged(every, done)
        records = sorted((each for each in every if not each.problem), key=lambda e: e.step)
        if len(records) < 2:
            raise UndefinedError(
                f"{self.one[0]} needs at least 2 checkpoints that can be measured, got "
                f"{len(records)}",
                hint="replace the checkpoints that are damaged, or hold NaN or infinity",
                slug="series-one",
            )
        return records

    def _check_unchanged(self, records: Iterable[StepRecord], done: Finished) -> None:
        """Refuse records of checkpoints that are not those in the folders now."""
        for each in records:
            now = self.print_of(each.step)
            if each.fingerprint and now and each.fingerprint != now:
                raise ResumeError(
                    f"cannot finish {done.target.name if done.target else 'the run'!r}: the "
                    f"checkpoint {each.name} was replaced after it was measured",
                    hint="begin again with --overwrite, or choose another folder",
                    slug="resume-other",
                )

    def join_readings(
        self, done: Finished, records: Sequence[StepRecord], remarks: Sequence[str]
    ) -> Results[Reading]:
        """Return the readings of all steps, and what is missing or wrong in any of them."""
        name = done.target.name if done.target is not None else self.series_name
        return Results(
            done.mark(
                with_run(each, run=name) for record in records for each in record.readings
            ),
            READINGS,
            remarks=remarks,
            left_out=list(dict.fromkeys(text for each in records for text in each.left_out)),
            trouble={
                f"{site} of {each.name}": why
                for each in records
                for site, why in each.trouble.items()
            },
        )

    def save_series(
        self,
        done: Finished,
        records: Sequence[StepRecord],
        readings: Results[Reading],
        parts: SeriesParts,
        *,
        settings: Mapping[str, object],
        identity: Mapping[str, object] | None = None,
    ) -> None:
        """Write the run folder; `settings` and `identity` are beside what all series say."""
        assert done.target is not None
        spec, plan = self.spec, done.plan_as(SeriesPlan)
        shas = "\n".join(str(each.identity.get("sha")) for each in records)
        whole = {
            **records[-1].identity,
            "model": self.series_name,
            "sha": blake2b(shas.encode(), digest_size=32).hexdigest(),
            **(identity or {}),
        }
        source = replace(plan.survey.drawn, warnings=tuple(readings.remarks), units=done.id)
        origin = new_origin(
            sources=[source],
            settings={
                **spec.settings(),
                **settings,
                **run_settings(plan.survey, self.corpus),
                "checkpoints": [
                    {"step": e.step, "name": e.name, "sha": e.identity.get("sha")}
                    for e in records
                ],
            },
            seed=spec.draw.seed,
            kind=spec.command,
            model=whole,
        )
        save(
            done.target,
            State(Survey()),
            readings,
            origin,
            {spec.command: spec.to_config(absolute=True) | {"threads": plan.threads}},
            done.overwrite,
            resume=True,
            series=parts.encode(),
        )

    def print_of(self, step: int) -> str:
        """Return the fingerprint of the weight files of a step; empty where there is none."""
        files: CheckpointFiles | None = self.files.get(step)
        return "" if files is None else files.fingerprint


def name_checkpoint(unit: Checkpoint, error: IsoscopeError) -> IsoscopeError:
    """Return the error of a checkpoint that cannot be measured, which names it."""
    return type(error)(
        f"cannot load the checkpoint {unit.name} of step {unit.step}: {error.problem}",
        hint=f"{error.hint}; --skip-broken does without it; with -o the others are kept, and "
        "the same command resumes",
        slug=error.slug,
    )


class Surveying(Protocol):
    """A worker that sums documents by unit."""

    def enter(self, plan: object, stage: int, before: State | None, /) -> None:
        """Turn to a stage."""

    def run(self, unit: object, scratch: Scratch, ticks: Ticks, /) -> Survey:
        """Sum one unit."""
        ...


def survey_stages(
    worker: Surveying, plan: Plan, scratch: Scratch, ticks: Ticks, id: str, spare: Path
) -> State:
    """Return the summaries of all stages of one model, merged as those of a run are."""
    state, *others = do_stages(worker, plan, scratch, ticks, id, spare)
    for second in others:
        state = state.overlay(second, spare)
    return state


def do_stages(
    worker: Surveying, plan: Plan, scratch: Scratch, ticks: Ticks, id: str, spare: Path
) -> list[State]:
    """Return the merged summaries of each stage of one model."""
    found: list[State] = []
    before = 0
    for number, units in enumerate(plan.stages):
        worker.enter(plan, number, found[-1] if found else None)
        folder = spare / f"stage-{number}"
        keeper = SummaryKeeper(
            len(units),
            id=f"{id} {number}",
            spare=partial(_make_folder, folder),
            room=ROOM,
        )
        for unit in keeper.missing():
            done = before
            inner = Ticks(lambda rows, done=done: ticks.at(done + rows), ticks.note)
            keeper.add(unit, worker.run(units[unit], scratch, inner))
            before += plan.size(number, unit) or 0
            trim()
        found.append(keeper.total())
    return found


def _make_folder(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def pack_spreads(
    unit: Checkpoint, spreads: Spreads, spectra: tuple[SpectrumPoints, ...] = ()
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


def unpack_spreads(parts: StepParts | None) -> Iterator[tuple[tuple[str, str, str], Spread]]:
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

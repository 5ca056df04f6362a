"""Checkpoints of a series as units of work: loaded one ahead, and what is kept of each."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from isoscope.accumulate.survey import Survey
from isoscope.engine import Notify, Scratch, Ticks
from isoscope.engine.allocator import trim
from isoscope.engine.plan import Plan
from isoscope.errors import IsoscopeError, ResumeError
from isoscope.measures.interval import Spread
from isoscope.registry import unknown
from isoscope.store.keepers import SummaryKeeper
from isoscope.store.series import GroupParts, Numbers, SpectrumPoints, StepParts
from isoscope.store.state import State
from isoscope.study.model import ModelSites
from isoscope.study.reading import Spreads
from isoscope.study.run import Finished
from isoscope.study.selection import PREPARED
from isoscope.study.series import (
    ONE,
    Checkpoint,
    CheckpointFiles,
    check_alike,
    find_checkpoints,
    hub_name,
    is_on_hub,
    locate_files,
    read_files,
)
from isoscope.types import Reading

if TYPE_CHECKING:
    from isoscope.capture.feed import Prepared

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


class SeriesWorker:
    """The checkpoints of a series, loaded one ahead of the one that runs."""

    def __init__(
        self,
        names: Sequence[str],
        revisions: Sequence[str] | None,
        notify: Notify,
        one: tuple[str, str] = ONE,
    ) -> None:
        self.names, self.revisions, self.notify = names, revisions, notify
        self.checkpoints = find_checkpoints(names, revisions, one)
        self._check_revisions()
        self.files = {each.step: read_files(each.where) for each in self.checkpoints}
        check_alike([(each, self.files[each.step]) for each in self.checkpoints])
        self.loading: dict[str, Future[ModelSites]] = {}
        self.pool = ThreadPoolExecutor(1)
        self.tokens = KeptDocuments()

    @property
    def series_name(self) -> str:
        """What the series is called."""
        first = self.names[0]
        if is_on_hub(first):
            return first.partition("@")[0]
        path = Path(first).expanduser().resolve()
        return path.parent.name if len(self.names) > 1 else path.name

    # --- the plan -------------------------------------------------------------------------
    def series_content(self, dtype: str | None, *, code: bool) -> dict[str, str]:
        """Return fingerprints of what all checkpoints share; units have those of their own."""
        from isoscope.capture.model.folder import sha_of_files
        from isoscope.capture.model.network import find_dtype
        from isoscope.capture.model.tokenizer import tokenizer_files

        folder = locate_files(
            self.first.where, code=code, weights=False, say=self.notify.tell
        ).folder
        found = {
            "steps": ",".join(str(each.step) for each in self.checkpoints),
            "dtype": str(find_dtype(dtype)),
        }
        config = folder / "config.json"
        if folder.is_dir() and config.is_file():
            found["model config"] = sha_of_files([config])
            found["tokenizer"] = sha_of_files(tokenizer_files(folder))
        return found

    @property
    def first(self) -> Checkpoint:
        """The first checkpoint that is whole, as far as its files tell."""
        whole = [each for each in self.checkpoints if not self._problem(each)]
        return whole[0] if whole else self.checkpoints[0]

    def open_first(
        self, open: Callable[[Checkpoint], W], *, skip: bool
    ) -> tuple[Checkpoint, W]:
        """Return the first checkpoint that can be loaded; with `skip` go on to the next."""
        whole = [each for each in self.checkpoints if not self._problem(each)]
        *others, last = whole or self.checkpoints[:1]
        for each in (*others, last):
            try:
                return each, open(each)
            except IsoscopeError as error:
                if each is last or not skip:
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
        """Load a checkpoint."""
        raise NotImplementedError

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

    # --- the end --------------------------------------------------------------------------
    def check_unchanged(self, records: Iterable[StepRecord], done: Finished) -> None:
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
    state = found[0]
    for second in found[1:]:
        state = state.overlay(second, spare)
    return state


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

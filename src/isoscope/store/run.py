"""Runs saved and read back.

Saving fills a new folder beside the old one, which is then put in its place. What is read is
not trusted until it has been checked.
"""

import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import cast

import msgspec

from isoscope.accumulate.survey import SECOND_PASS, Place, Survey
from isoscope.dataclass import dataclass
from isoscope.errors import RunExistsError, StoreError
from isoscope.site import is_matrix
from isoscope.store.atomic import (
    find_replaced,
    link_or_copy,
    put_in_place,
    reading,
    staging,
    sync,
    writing,
)
from isoscope.store.keepers import count_units
from isoscope.store.origin import Origin, Settings, versions
from isoscope.store.readings import read_readings, write_readings
from isoscope.store.schema import (
    CONFIG,
    FILES,
    MANIFEST,
    READINGS,
    SCHEMA,
    SERIES,
    STATE,
    Edition,
    FileMark,
    Manifest,
    plain_texts,
    plain_values,
)
from isoscope.store.state import State, StateReader, StateWriter, first_reasons
from isoscope.types import Reading

LARGEST = 64 * 2**20  # bytes of run.json and config.yaml that are read at all
BEGUN, PLAN = "begun.json", "plan.msgpack"
FAILED = "failed.json"  # units that failed every time, and how
# What an unfinished run may hold; the first two are of versions before there were plans.
WORKING = {"units", "again", BEGUN, PLAN, FAILED, "lock", "notes.json", "scratch"}


def check_target(
    path: str | os.PathLike[str], overwrite: bool = False, *, resume: bool = False
) -> Path:
    """Return where a run will be written, or raise before any work is done in vain.

    A folder of an unfinished run is accepted where `resume` says so.
    """
    try:
        target = Path(path).resolve()
        if resume and is_unfinished(target):
            return target
        if os.path.lexists(target):
            _may_replace(target, overwrite)
        else:
            _may_write(target)
    except (OSError, ValueError, RuntimeError) as error:  # no such name, a loop of links
        raise StoreError(
            f"cannot write a run to {os.fspath(path)!r}: {error}",
            hint="choose another folder",
            slug="store-write",
        ) from error
    return target


def is_finished(target: Path) -> bool:
    """Whether a folder holds a run that is whole."""
    return (target / MANIFEST).is_file()


def is_unfinished(target: Path) -> bool:
    """Whether a folder holds units of a run that is not whole yet, and nothing else."""
    if not target.is_dir() or (target / MANIFEST).exists():
        return False
    return all(
        each.name in WORKING or each.name.startswith("stage-") or each.suffix == ".part"
        for each in target.iterdir()
    )


def units_done(folder: Path) -> tuple[int, int] | None:
    """Return how many units of an unfinished run are done, and of how many; None if unknown."""
    try:
        plan = msgspec.msgpack.decode((folder / PLAN).read_bytes(), type=_Stages)
    except (OSError, msgspec.MsgspecError):
        return None
    sizes = [len(units) for units in plan.stages]
    done = [count_units(folder / f"stage-{n}", size) for n, size in enumerate(sizes, 1)]
    return sum(done), sum(sizes)


class _Stages(msgspec.Struct):
    """The stages of any plan, without what their units are."""

    stages: list[list[msgspec.Raw]]


def save(
    path: str | os.PathLike[str],
    state: State | Survey,
    readings: Sequence[Reading] | Callable[[], Sequence[Reading]],
    origin: Origin,
    config: Mapping[str, object],
    overwrite: bool = False,
    *,
    resume: bool = False,
    series: bytes | None = None,
    id: str = "",
    files: Path | None = None,
) -> Path:
    """Write a run folder whole, or leave everything as it was.

    A function that returns the readings is called while the state is being written. The
    folder in which the units of this run were kept is replaced by it. `series` is the
    content of the file that only runs of a series have, `id` the digest of what the run was
    measured with; what is in the folder `files`, such as checkpoints, becomes a part of it.
    """
    import yaml

    target = check_target(path, overwrite, resume=resume)
    text = yaml.safe_dump(plain_values(dict(config)), sort_keys=False, allow_unicode=True)
    with (
        writing(target, "what was there is untouched"),
        staging(target) as folder,
        ThreadPoolExecutor(1) as pool,
    ):
        whole = State(state) if isinstance(state, Survey) else state
        written = pool.submit(_write_state, whole, folder / STATE)
        found = readings() if callable(readings) else readings
        write_readings(folder / READINGS, found)
        (folder / CONFIG).write_bytes(text.encode("utf-8"))
        for name in (READINGS, CONFIG):
            sync(folder / name)
        marks = {STATE: written.result(), READINGS: mark(folder / READINGS)}
        if series is not None:
            (folder / SERIES).write_bytes(series)
            sync(folder / SERIES)
            marks[SERIES] = mark(folder / SERIES)
        if files is not None:
            marks |= _add_files(files, folder)
        (folder / MANIFEST).write_bytes(_manifest(found, origin, marks, id))
        sync(folder / MANIFEST)
        check_target(path, overwrite, resume=resume)  # someone else may have been faster
        put_in_place(folder, target)
    return target


def _add_files(source: Path, folder: Path) -> dict[str, FileMark]:
    """Give all files of a folder a second name in a run; return their marks by name."""
    marks: dict[str, FileMark] = {}
    for path in sorted(each for each in source.rglob("*") if each.is_file()):
        name = path.relative_to(source)
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        link_or_copy(path, target)
        sync(target)
        marks[name.as_posix()] = mark(target)
    return marks


def _write_state(state: State, path: Path) -> FileMark:
    state.write(path)
    sync(path)
    return mark(path)


def _may_replace(target: Path, overwrite: bool) -> None:
    ours = target.is_dir() and (target / MANIFEST).is_file()
    if not overwrite:
        raise RunExistsError(
            f"expected a new folder for the run, got {str(target)!r}, which exists",
            hint=f"look at it with isoscope read {target} or isoscope report {target}; choose "
            "another name, or replace the run with --overwrite"
            if ours
            else "choose another name for the output",
            slug="store-exists",
        )
    if not ours:
        raise StoreError(
            f"cannot overwrite {str(target)!r}: it is not a run folder",
            hint="choose another name, or remove it yourself",
            slug="store-foreign",
        )
    known = {*FILES, SERIES, *_added_names(target)}
    foreign = sorted(each.name for each in target.iterdir() if each.name not in known)
    if foreign:
        raise StoreError(
            f"cannot overwrite {str(target)!r}: it also holds {foreign[0]!r}",
            hint="move what is not part of the run elsewhere, or choose another name",
            slug="store-foreign",
        )


def _added_names(target: Path) -> set[str]:
    """Return the names in a run folder that belong to files such as checkpoints."""
    with suppress(OSError, msgspec.MsgspecError, ValueError):
        manifest = msgspec.json.decode(_content(target / MANIFEST), type=Manifest)
        return {name.partition("/")[0] for name in manifest.files}
    return set()


def _may_write(target: Path) -> None:
    with suppress(FileNotFoundError):
        target.lstat()  # raises the others: a name too long, a file where a folder should be
    nearest = next(parent for parent in target.parents if parent.exists())
    if not nearest.is_dir():
        raise NotADirectoryError(f"{str(nearest)!r} is not a folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise PermissionError(f"{str(nearest)!r} may not be written to")


def _manifest(
    readings: Sequence[Reading], origin: Origin, marks: dict[str, FileMark], id: str
) -> bytes:
    manifest = Manifest(
        schema=SCHEMA,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        origin=origin.to_dict(),
        versions=versions(),
        command=plain_texts(sys.argv),
        files=marks,
        left_out=plain_texts(getattr(readings, "left_out", ())),
        warnings=plain_texts(dict.fromkeys(w for each in readings for w in each.warnings)),
        id=id,
    )
    return msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"


def mark(path: Path) -> FileMark:
    """Return size and checksum of a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32))
        return FileMark(bytes=os.fstat(file.fileno()).st_size, blake2b=digest.hexdigest())


@dataclass(frozen=True)
class Run:
    """One run folder. Readings are loaded; the survey is read when it is needed.

    Its state may take gigabytes, so its checksum is checked then and not before; its
    size, and the checksum of the readings, are checked at once.
    """

    path: Path
    manifest: Manifest
    origin: Origin
    readings: list[Reading]

    @property
    def settings(self) -> Settings:
        """What the measures were computed with."""
        return self.origin.settings

    @property
    def left_out(self) -> tuple[str, ...]:
        """The measures that could not be computed, and why."""
        return tuple(self.manifest.left_out)

    @cached_property
    def config(self) -> dict[str, object]:
        """The config that measures this run again."""
        import yaml

        with reading(self.path / CONFIG):
            config = cast(object, yaml.safe_load(_content(self.path / CONFIG)))
            return msgspec.convert(config, dict[str, object])

    @cached_property
    def series(self) -> bytes | None:
        """The content of the file that only runs of a series have."""
        expected = self.manifest.files.get(SERIES)
        if expected is None:
            return None
        with reading(self.path / SERIES):
            _same(self.path / SERIES, expected)
            return (self.path / SERIES).read_bytes()

    def check_state(self) -> None:
        """Raise where the state is not the one that was written; it is not checked again."""
        _ = self._reader

    @property
    def sites(self) -> tuple[str, ...]:
        """The sites of which something was collected, each once."""
        return self._reader.sites

    @property
    def places(self) -> tuple[Place, ...]:
        """Site and class or variant of everything that was collected."""
        return self._reader.places

    def by_site(self, sites: Sequence[str] | None = None) -> Iterator[Survey]:
        """Yield what was collected a site at a time: memory holds one of them."""
        return map(self.survey_of, self.sites if sites is None else sites)

    @cached_property
    def survey(self) -> Survey:
        """What was collected, ready to be merged or read."""
        with reading(self.path / STATE):
            return self._reader.whole_survey()

    def survey_of(self, site: str) -> Survey:
        """What was collected at one site; the others stay on disk."""
        with reading(self.path / STATE):
            return self._reader.survey_of(site)

    def survey_at(self, place: Place) -> Survey:
        """What was collected at one site of one class or variant; empty where nothing was."""
        with reading(self.path / STATE):
            return self._reader.part([place])

    @cached_property
    def trouble(self) -> dict[str, str]:
        """Sites where NaN or infinity was found, and at which document.

        It stands in the header of the state, which is read without its gigabytes.
        """
        with reading(self.path / STATE):
            return StateReader(self.path / STATE).trouble

    @cached_property
    def _reader(self) -> StateReader:
        path = self.path / STATE
        with reading(path):
            _same(path, self.manifest.files[STATE])
            return StateReader(path, trusted=False)


def merge_states(runs: Sequence[Run], out: Path) -> None:
    """Write the state of all runs together, one place at a time: memory never holds a model.

    A site that is in trouble in one of them is in trouble in the result, for the reason
    that the first of them gives.
    """
    trouble: dict[str, str] = {}
    for run in runs:
        trouble = first_reasons(trouble, run.trouble)
    places = dict.fromkeys(place for run in runs for place in run.places)
    # What goes wrong in reading is a StoreError already.
    with writing(out.parent.parent, "what was there is untouched"), StateWriter(out) as merged:
        for place in places:
            if place[0] not in trouble:
                those = [run for run in runs if place in run.places]
                merged.add(_merge_place(those, place, alone=len(runs) == 1).to_state())
        merged.note(trouble)


def _merge_place(runs: Sequence[Run], place: Place, *, alone: bool) -> Survey:
    """Return what runs have collected at a place, added up in their order."""
    if is_matrix(place[0]):  # it is in every run of the model, and counts once
        return runs[0].survey_at(place)
    total = Survey()
    for run in runs:
        part = run.survey_at(place)
        if not alone:  # second passes of runs started from different means: they do not add up
            for kind in SECOND_PASS:
                part.held[place].pop(kind, None)
        total.merge(part)
    return total


def load(path: str | os.PathLike[str]) -> Run:
    """Read a run folder, or raise a StoreError that says what is wrong with it."""
    folder = Path(path)
    with reading(folder / MANIFEST):
        if not (folder / MANIFEST).is_file():
            raise _no_run(folder)
        content = _content(folder / MANIFEST)
        edition = msgspec.json.decode(content, type=Edition).schema
        if edition > SCHEMA:
            raise StoreError(
                f"expected a run of schema {SCHEMA} or less, got {edition} in {str(folder)!r}",
                hint="upgrade with: pip install --upgrade isoscope",
                slug="store-newer",
            )
        if edition < 1:
            raise ValueError(f"expected a schema of at least 1, got {edition}")
        manifest = msgspec.json.decode(content, type=Manifest)
        origin = Origin.from_dict(manifest.origin)
        if origin.schema != manifest.schema:
            raise ValueError(f"expected schema {manifest.schema}, got {origin.schema}")
        for name in (STATE, READINGS):
            if name not in manifest.files:
                raise ValueError(f"it has no checksum of {name!r}")
    with reading(folder / STATE):
        _same_size(folder / STATE, manifest.files[STATE])
    with reading(folder / READINGS):
        _same(folder / READINGS, manifest.files[READINGS])
        readings = read_readings(folder / READINGS)
    return Run(path=folder, manifest=manifest, origin=origin, readings=readings)


def open_run(run: str | os.PathLike[str] | Run) -> Run:
    """Return a run: itself if it is loaded, otherwise read from its folder."""
    return run if isinstance(run, Run) else load(run)


def _no_run(folder: Path) -> StoreError:
    if is_unfinished(folder) and (known := units_done(folder)) is not None:
        done, total = known
        return StoreError(
            f"the run {str(folder)!r} is not finished: {done} of {total} units are done",
            hint="the command that began it resumes it",
            slug="store-unfinished",
        )
    if folder.is_dir():
        return StoreError(
            f"expected a run folder, got {str(folder)!r}, which has no {MANIFEST}",
            hint="name a folder written by -o; the same command finishes an unfinished run",
            slug="store-unfinished",
        )
    if folder.exists():
        return StoreError(
            f"expected a run folder, got the file {str(folder)!r}",
            hint="name a folder written by -o, or measure the file first",
            slug="store-missing",
        )
    old = find_replaced(folder)
    return StoreError(
        f"no run folder is called {str(folder)!r}",
        hint=f"overwriting it was interrupted; rename {str(old)!r} back"
        if old
        else "check the path; runs are written by -o",
        slug="store-missing",
    )


def _same_size(path: Path, expected: FileMark) -> None:
    size = path.stat().st_size
    if size != expected.bytes:
        raise ValueError(f"expected {expected.bytes} bytes, got {size}")


def _same(path: Path, expected: FileMark) -> None:
    _same_size(path, expected)
    if mark(path).blake2b != expected.blake2b:
        raise ValueError("its checksum is not the one that was written")


def _content(path: Path) -> bytes:
    if not path.is_file():
        raise OSError("it is not there")
    if path.stat().st_size > LARGEST:
        raise ValueError(f"expected at most {LARGEST} bytes, got {path.stat().st_size}")
    return path.read_bytes()

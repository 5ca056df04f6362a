"""The working folder of a run that is not finished: its lock, spec, plan and stages."""

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from time import monotonic, sleep

import msgspec

from isoscope.errors import LockedError, StoreError
from isoscope.store.atomic import SpareFolder, reading, write_whole, writing
from isoscope.store.origin import versions
from isoscope.store.run import BEGUN, FAILED, PLAN, check_target, is_unfinished

try:
    import fcntl
except ImportError:  # pragma: no cover - not on Windows, where the process id has to do
    fcntl = None

LOCK = "lock"  # the file that is locked
ATTEMPTS = 100  # each of which meets a folder that was removed or replaced that very moment
PATIENCE = 1.0  # seconds that the workers of a killed driver have to notice its death
NOTES = "notes.json"
DAMAGED = (
    "what was begun there is damaged: choose another folder, or begin again with --overwrite"
)
LONGEST = 40  # characters of a name that other names are made of


class Holder(msgspec.Struct, frozen=True):
    """Who holds a lock."""

    pid: int
    started: str
    host: str = ""


class Lock:
    """Held from `acquire` to `release`, or until the process ends, however it ends.

    Worker processes that inherit the descriptor hold it too: nobody else begins before the
    last process that could still write to the folder is gone.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOCK
        self.descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock, or raise a LockedError that names the process that has it.

        The folder is made where there is none.
        """
        descriptor = next(filter(None, (self._try() for _ in range(ATTEMPTS))), None)
        if descriptor is None:
            raise self._refusal(None)
        holder = Holder(os.getpid(), datetime.now(UTC).isoformat(timespec="seconds"), _host())
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, msgspec.json.encode(holder), 0)
        self.descriptor = descriptor

    def release(self) -> None:
        """Let others have it."""
        if self.descriptor is not None:
            if self._is_named(self.descriptor):  # and not that of a run put in its place
                with suppress(OSError):
                    self.path.unlink()
            os.close(self.descriptor)
            self.descriptor = None

    def _try(self) -> int | None:
        """Lock, with some patience, or raise; None where the folder was removed or replaced."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except FileNotFoundError:
            return None
        try:
            end = monotonic() + PATIENCE
            while not _lock(descriptor):
                if monotonic() >= end:
                    raise self._refusal(_holder(descriptor))
                sleep(0.02)
            if self._is_named(descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        return None

    def _is_named(self, descriptor: int) -> bool:
        """Whether the file is still the one at the path: the folder may be another by now."""
        with suppress(OSError):
            return os.path.samestat(os.fstat(descriptor), self.path.stat())
        return False

    def _refusal(self, holder: Holder | None) -> LockedError:
        name = self.path.parent.name
        who = f"process {holder.pid}, started {holder.started}" if holder else "another process"
        return LockedError(
            f"cannot work on the run {name!r}: {who}, is at work on it",
            hint="wait for it to end, or stop it; the same command then resumes the run",
            slug="run-locked",
        )


class Begun(msgspec.Struct, frozen=True):
    """What a run was begun with."""

    id: str
    resolved: dict[str, object]
    plan: str  # checksum of the plan
    version: str = ""  # of the package: another one may count differently


class Working:
    """A folder that holds the units of a run until it is whole; a context manager.

    Without a target it is a temporary folder, made only where somebody asks for it. Left
    by an error before anything was kept, a folder that was begun here is removed.
    """

    def __init__(self, target: Path | None, *, overwrite: bool = False) -> None:
        self.target = target
        self.overwrite = overwrite
        self.notes: list[str] = []
        self.folder: Path | None = None if target is None else _folder_for(target)
        self._spare: SpareFolder | None = None
        self._lock: Lock | None = None
        self._begun_here = False
        self._was_empty = False

    def __enter__(self) -> "Working":
        if self.target is not None:
            with writing(self.target):
                self.folder = self._acquire(self.target)
                self._begun_here = not any(_content(self.folder))
                with suppress(OSError, msgspec.MsgspecError):
                    content = (self.folder / NOTES).read_bytes()
                    self.notes = msgspec.json.decode(content, type=list[str])
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._lock is not None:
            if kind is None or (self._begun_here and not self._keeps_anything()):
                self._remove()
            self._lock.release()
            self._lock = None
        if self._spare is not None:
            self._spare.cleanup()
            self._spare = None

    @property
    def name(self) -> str:
        """The name of the run, for messages."""
        return "" if self.target is None else self.target.name

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What worker processes inherit: with it they hold the lock as long as they live."""
        held = None if self._lock is None else self._lock.descriptor
        return () if held is None else (held,)

    def begun(self) -> Begun | None:
        """Return what an unfinished run was begun with; None for a new one."""
        path = None if self.folder is None else self.folder / BEGUN
        if path is None or not path.exists():
            return None
        with reading(path, DAMAGED):
            return msgspec.json.decode(path.read_bytes(), type=Begun)

    def begin(self, id: str, resolved: Mapping[str, object], plan: bytes) -> None:
        """Write plan and spec; the spec last, since it says that the plan is whole."""
        if self.folder is None:
            return
        begun = Begun(id, dict(resolved), _digest(plan), versions()["isoscope"])
        with writing(self.folder):
            self.restart()
            write_whole(self.folder / PLAN, plan)
            write_whole(self.folder / BEGUN, msgspec.json.encode(begun))

    def read_plan(self, begun: Begun) -> bytes:
        """Return the plan of an unfinished run."""
        assert self.folder is not None
        with reading(self.folder / PLAN, DAMAGED):
            content = (self.folder / PLAN).read_bytes()
            if _digest(content) != begun.plan:
                raise ValueError("its checksum is not the one that was written")
        return content

    def restart(self) -> None:
        """Remove what an earlier run left in the folder, but for the lock."""
        if self.folder is None:
            return
        # The spec first: without it nobody resumes what is left of the rest.
        for each in sorted(_content(self.folder), key=lambda path: path.name != BEGUN):
            shutil.rmtree(each) if each.is_dir() else each.unlink()
        self.notes.clear()
        self._begun_here = True

    def stage(self, number: int, after: str = "") -> Path | None:
        """Return the folder of a stage; one that built on another state is emptied."""
        if self.folder is None:
            return None
        folder = self.folder / f"stage-{number}"
        mark = folder / "after"
        with writing(self.folder):
            if folder.exists() and after and (not mark.exists() or mark.read_text() != after):
                for each in (folder, *self.folder.glob(f"scratch/{number}-*")):
                    shutil.rmtree(each)
            folder.mkdir(exist_ok=True)
            if after and not mark.exists():
                write_whole(mark, after.encode())
        return folder

    def scratch(self) -> Path:
        """Return a folder where units leave what survives a kill."""
        place = (self.folder if self.folder is not None else self.spare()) / "scratch"
        place.mkdir(exist_ok=True)
        return place

    def spare(self) -> Path:
        """Return a temporary folder that is removed at the end."""
        if self._spare is None:
            self._spare = SpareFolder()
        return Path(self._spare.name)

    def note(self, text: str) -> None:
        """Record something that readers of the run should know; it survives a kill."""
        if text in self.notes:
            return
        self.notes.append(text)
        if self.folder is not None:
            with writing(self.folder):
                write_whole(self.folder / NOTES, msgspec.json.encode(self.notes))

    def record_failures(self, failures: Sequence[msgspec.Struct]) -> None:
        """Write which units failed every time, and how; the file of an earlier try is gone."""
        if self.folder is None:
            return
        path = self.folder / FAILED
        with writing(self.folder):
            if failures:
                content = msgspec.json.format(msgspec.json.encode(failures), indent=1)
                write_whole(path, content)
            else:
                path.unlink(missing_ok=True)

    def _acquire(self, target: Path) -> Path:
        """Lock the folder for units; another driver may have finished the run meanwhile."""
        while True:
            check_target(target, self.overwrite, resume=True)
            folder = _folder_for(target)
            self._was_empty = folder.is_dir() and not any(folder.iterdir())
            self._lock = Lock(folder)
            self._lock.acquire()
            if is_unfinished(folder) and folder == _folder_for(target):
                return folder
            self._lock.release()
            self._lock = None
            with suppress(OSError):
                folder.rmdir()  # where it was made for nothing
            if folder != target and folder.exists():
                raise StoreError(
                    f"cannot write a run to {str(folder)!r}: it holds other files",
                    hint="move them elsewhere, or choose another name for the output",
                    slug="store-foreign",
                )

    def _keeps_anything(self) -> bool:
        """Whether a unit was kept, or left something for its next try."""
        assert self.folder is not None
        kept = ("stage-*/node-*", "stage-*/unit-*", "scratch/*/*")
        return any(any(self.folder.glob(pattern)) for pattern in kept)

    def _remove(self) -> None:
        """Remove the folder under its lock, unless a finished run stands there by now."""
        assert self.folder is not None and self._lock is not None
        with suppress(OSError):
            if is_unfinished(self.folder):
                self.restart()
                self._lock.release()  # which makes the folder empty
                if not self._was_empty:
                    self.folder.rmdir()  # fails where somebody has begun anew


def open_target(
    output: str | os.PathLike[str] | None, overwrite: bool, *, resume: bool = True
) -> Path | None:
    """Return the folder a run will be written to, one that was begun included."""
    return None if output is None else check_target(output, overwrite, resume=resume)


def _folder_for(target: Path) -> Path:
    """Return where units are kept: in the folder itself, unless a run is to be replaced."""
    if not target.exists() or is_unfinished(target):
        return target
    name = target.name
    if len(name) > LONGEST:  # names with the same beginning stay apart
        name = f"{name[:LONGEST]}-{_digest(os.fsencode(name))[:8]}"
    return target.parent / f".isoscope-{name}-units"


def _content(folder: Path) -> list[Path]:
    """Return what a working folder holds besides its lock."""
    return [each for each in folder.iterdir() if each.name != LOCK]


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


def _lock(descriptor: int) -> bool:
    """Try to lock; where there are no locks, the process id in the file has to do."""
    with suppress(OSError, AttributeError):  # no such thing on this file system or platform
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # type: ignore[union-attr]
            return True
        except BlockingIOError:
            return False
    holder = _holder(descriptor)
    return holder is None or holder.host != _host() or not _lives(holder.pid)


def _holder(descriptor: int) -> Holder | None:
    with suppress(msgspec.MsgspecError, OSError):
        return msgspec.json.decode(os.pread(descriptor, 4096, 0), type=Holder)
    return None


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return pid != os.getpid()


def _host() -> str:
    return os.uname().nodename if hasattr(os, "uname") else ""

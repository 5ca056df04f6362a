"""One driver per run folder: a lock that a crash releases by itself."""

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep

import msgspec

from isoscope.errors import LockedError

try:
    import fcntl
except ImportError:  # pragma: no cover - not on Windows, where the process id has to do
    fcntl = None

NAME = "lock"
ATTEMPTS = 100  # each of which meets a folder that was removed or replaced that very moment
PATIENCE = 1.0  # seconds that the workers of a killed driver have to notice its death


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
        self.path = folder / NAME
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

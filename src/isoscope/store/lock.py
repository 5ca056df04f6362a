"""One driver per run folder: a lock that a crash releases by itself."""

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from isoscope.errors import LockedError, StoreError

try:
    import fcntl
except ImportError:  # pragma: no cover - not on Windows, where the process id has to do
    fcntl = None

NAME = "lock"


class Holder(msgspec.Struct, frozen=True):
    """Who holds a lock."""

    pid: int
    started: str
    host: str = ""


class Lock:
    """Held from `acquire` to `release`, or until the process ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock, or raise a LockedError that names the process that has it."""
        while True:
            descriptor = self._open()
            try:
                self._take(descriptor)
            except BaseException:
                os.close(descriptor)
                raise
            with suppress(FileNotFoundError):
                # A run that was just finished is another folder by now: look again.
                if os.fstat(descriptor).st_ino == self.path.stat().st_ino:
                    break
            os.close(descriptor)
            self.path.parent.mkdir(parents=True, exist_ok=True)
        holder = Holder(os.getpid(), datetime.now(UTC).isoformat(timespec="seconds"), _host())
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, msgspec.json.encode(holder), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Let others have it."""
        if self._descriptor is not None:
            with suppress(OSError):
                self.path.unlink()
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int:
        try:
            return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise StoreError(
                f"cannot write a run to {str(self.path.parent)!r}: {error.strerror}",
                hint="choose another folder",
                slug="store-write",
            ) from error

    def _take(self, descriptor: int) -> None:
        if fcntl is not None:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise self._refusal(_holder(descriptor)) from None
            except OSError:  # a file system without locks: the process id has to do
                self._refuse_living(descriptor)
        else:  # pragma: no cover
            self._refuse_living(descriptor)

    def _refuse_living(self, descriptor: int) -> None:
        holder = _holder(descriptor)
        if holder is not None and holder.host == _host() and _lives(holder.pid):
            raise self._refusal(holder)

    def _refusal(self, holder: Holder | None) -> LockedError:
        name = self.path.parent.name
        who = f"process {holder.pid}, started {holder.started}" if holder else "another process"
        return LockedError(
            f"cannot work on the run {name!r}: {who}, is at work on it",
            hint="wait for it to end, or stop it; the same command then resumes the run",
            slug="run-locked",
        )


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

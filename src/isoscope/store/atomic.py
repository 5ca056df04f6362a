"""Files and folders put in place in one step: whole or not at all, even over another one."""

import ctypes
import errno
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

from isoscope.errors import IsoscopeError, StoreError, WriteError

try:
    import fcntl
except ImportError:  # not on this platform: nothing is known of who holds a folder
    fcntl = None

PARTIAL = ".partial"  # being written; left behind only by a killed process, never read
DAMAGED = "the run is damaged; copy it again, or measure it again with its config.yaml"
SPARE = ".spare"  # a temporary folder of a run that is not written anywhere
REPLACED = ".old"  # the run that was there before, where folders cannot be swapped

_LEFTOVER = re.compile(
    rf"\.isoscope-(?:[0-9a-f]{{16}}{re.escape(PARTIAL)}|\w{{8}}{re.escape(SPARE)})"
)
_YOUNG = 60.0  # seconds
_AT_CWD, _EXCHANGE = -100, 2  # of renameat2(2)
_NOT_HERE = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}


@contextmanager
def writing(folder: Path, rest: str = "what was saved is still there") -> Generator[None]:
    """Turn errors of the disk into a WriteError that names the folder and says what is left."""
    try:
        yield
    except OSError as error:
        raise WriteError(
            f"cannot write a run to {str(folder)!r}: {error.strerror or error}",
            hint=f"free some space or choose another folder; {rest}",
            slug="store-write",
        ) from error


@contextmanager
def reading(path: Path, hint: str = DAMAGED) -> Generator[None]:
    """Report whatever goes wrong while a file is read as damage of that file."""
    try:
        yield
    except IsoscopeError:
        raise
    except Exception as error:
        why = (error.strerror or error) if isinstance(error, OSError) else error
        problem = f"cannot read {str(path)!r}: {why}"
        raise StoreError(problem, hint=hint, slug="store-damaged") from error


def write_whole(path: Path, content: bytes) -> None:
    """Put a file in its place once its bytes are on the disk; a kill leaves a .part file."""
    part = path.with_name(f"{os.getpid()}-{path.name}.part")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


@contextmanager
def staging(target: Path) -> Generator[Path]:
    """Yield a new empty folder beside the target, removed at the end unless put in place.

    Beside it, because a rename is one step only within a file system. The name is
    random, so what a killed process left behind is in nobody's way; it is removed here.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(target.parent)
    folder = target.parent / f".isoscope-{os.urandom(8).hex()}{PARTIAL}"
    folder.mkdir()
    held = _hold(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _let_go(held)


class SpareFolder:
    """A temporary folder that is removed at the end, or by the next run after a kill."""

    def __init__(self) -> None:
        place = Path(tempfile.gettempdir())
        remove_leftovers(place)
        self.name = tempfile.mkdtemp(prefix=".isoscope-", suffix=SPARE)
        self._held = _hold(Path(self.name))
        self._process: int | None = os.getpid()

    def __enter__(self) -> str:
        return self.name

    def __exit__(self, *_: object) -> None:
        self.cleanup()

    def __del__(self) -> None:
        self.cleanup()

    def cleanup(self) -> None:
        """Remove the folder with all that is in it."""
        if self._process == os.getpid():  # and not in a fork of the process that made it
            self._process = None
            shutil.rmtree(self.name, ignore_errors=True)
            _let_go(self._held)


def remove_leftovers(place: Path) -> None:
    """Remove temporary folders whose process was killed: those that nobody holds any more.

    Young ones stay, since their process may be about to take hold of them.
    """
    with suppress(OSError):
        names = [each.name for each in os.scandir(place) if _LEFTOVER.fullmatch(each.name)]
        for folder in (place / name for name in names):
            with suppress(OSError):
                found = folder.lstat()
                own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
                if own and time.time() - found.st_mtime > _YOUNG:
                    _remove_if_free(folder)


def _remove_if_free(folder: Path) -> None:
    if fcntl is None:
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)


def _hold(folder: Path) -> int | None:
    """Take hold of a folder, as long as this process lives; None where that is not known."""
    if fcntl is None:
        return None
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _let_go(descriptor: int | None) -> None:
    if descriptor is not None:
        with suppress(OSError):
            os.close(descriptor)


def put_in_place(folder: Path, target: Path) -> None:
    """Make `folder` the target; a folder that was there gets the old name of `folder`.

    At every moment the target is the old folder or the new one, never half of either.
    Only where the file system cannot swap two names, there is a moment between two
    renames in which the old one is whole under another name, which `find_replaced` finds.
    """
    sync(folder)
    if not target.exists():
        folder.rename(target)
    else:
        try:
            exchange(folder, target)
        except OSError as error:
            if error.errno not in _NOT_HERE:
                raise
            _in_two_steps(folder, target)
    with suppress(OSError):  # it is in place; only a power cut could still undo that
        sync(target.parent)


def link_or_copy(path: Path, name: Path) -> None:
    """Give a file a second name, or copy it where the file system has no such thing."""
    try:
        os.link(path, name)
    except OSError:
        shutil.copyfile(path, name)


def find_replaced(target: Path) -> Path | None:
    """Return the run that an interrupted overwrite of the target left under another name."""
    name = re.compile(re.escape(_replaced_start(target)) + "[0-9a-f]{8}" + re.escape(REPLACED))
    if not target.parent.is_dir():
        return None
    return next((each for each in target.parent.iterdir() if name.fullmatch(each.name)), None)


def sync(path: Path) -> None:
    """Have a file's bytes, or a folder's names, on the disk before continuing."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NOT_HERE:  # some file systems have nothing to sync
            raise
    finally:
        os.close(descriptor)


def exchange(one: Path, other: Path) -> None:
    """Let two folders change names in one step, or raise OSError with ENOSYS and the like."""
    library = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(one), os.fsencode(other)
    if sys.platform == "linux" and hasattr(library, "renameat2"):
        failed = cast(int, library.renameat2(_AT_CWD, names[0], _AT_CWD, names[1], _EXCHANGE))
    elif sys.platform == "darwin" and hasattr(library, "renamex_np"):
        failed = cast(int, library.renamex_np(*names, _EXCHANGE))
    else:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if failed:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(one), None, str(other))


def _in_two_steps(folder: Path, target: Path) -> None:
    replaced = target.parent / f"{_replaced_start(target)}{os.urandom(4).hex()}{REPLACED}"
    target.rename(replaced)
    try:
        folder.rename(target)
    except BaseException:
        replaced.rename(target)
        raise
    shutil.rmtree(replaced, ignore_errors=True)


def _replaced_start(target: Path) -> str:
    return f".isoscope-{target.name[:40]}-"  # 40 characters stay below 255 bytes

"""Putting a folder in its place in one step, even where another one stands."""

import ctypes
import errno
import os
import re
import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

PARTIAL = ".partial"  # being written; left behind only by a killed process, never read
ASIDE = ".old"  # the run that stood in place, where the file system cannot swap folders

_AT_CWD, _EXCHANGE = -100, 2  # of renameat2(2)
_NOT_HERE = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}


@contextmanager
def staged(target: Path) -> Generator[Path]:
    """A new empty folder beside the target, removed at the end unless it was put in place.

    Beside it, because a rename is one step only within a file system. The name is
    random, so what a killed process left behind is in nobody's way.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = target.parent / f".isoscope-{token_hex(8)}{PARTIAL}"
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def put(folder: Path, target: Path) -> None:
    """Make `folder` the target; a folder that stood there is under the old name of ours.

    At every moment the target is the old folder or the new one, never half of either.
    Only where the file system cannot swap two names, there is a moment between two
    renames in which the old one is whole under another name, which `set_aside` finds.
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


def linked(path: Path, name: Path) -> None:
    """Give a file a second name, or copy it where the file system has no such thing."""
    try:
        os.link(path, name)
    except OSError:
        shutil.copyfile(path, name)


def set_aside(target: Path) -> Path | None:
    """The run that an interrupted overwriting of the target left under another name."""
    name = re.compile(re.escape(_aside_start(target)) + "[0-9a-f]{8}" + re.escape(ASIDE))
    if not target.parent.is_dir():
        return None
    return next((each for each in target.parent.iterdir() if name.fullmatch(each.name)), None)


def sync(path: Path) -> None:
    """Have a file's bytes, or a folder's names, on the disk before going on."""
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
        failed = library.renameat2(_AT_CWD, names[0], _AT_CWD, names[1], _EXCHANGE)
    elif sys.platform == "darwin" and hasattr(library, "renamex_np"):
        failed = library.renamex_np(*names, _EXCHANGE)
    else:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if failed:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(one), None, str(other))


def _in_two_steps(folder: Path, target: Path) -> None:
    aside = target.parent / f"{_aside_start(target)}{token_hex(4)}{ASIDE}"
    target.rename(aside)
    try:
        folder.rename(target)
    except BaseException:
        aside.rename(target)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _aside_start(target: Path) -> str:
    return f".isoscope-{target.name[:40]}-"  # 40 characters stay below 255 bytes

"""Write a file atomically, and never over a file that isoscope did not write."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from isoscope.errors import StoreError

MARK = "<!-- written by isoscope report -->"
_BEGINNINGS = {
    ".pdf": (b"%PDF-",),
    ".png": (b"\x89PNG\r\n",),
    ".svg": (b"<svg", b"<?xml"),
}


def check_file(path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Return the path of a file to be written; raise early if it cannot be written."""
    target = Path(path)
    try:
        if not _exists(target):
            if not target.resolve().parent.is_dir():
                raise NotADirectoryError(f"there is no folder {str(target.parent)!r}")
            return target
        if not overwrite:
            raise StoreError(
                f"expected a new file, got {str(target)!r}, which exists",
                hint="choose another name, or replace it with --overwrite",
                slug="file-exists",
            )
        if target.is_symlink() or not target.is_file() or not _is_ours(target):
            raise StoreError(
                f"cannot overwrite {str(target)!r}: isoscope did not write it",
                hint="choose another name, or remove it yourself",
                slug="file-foreign",
            )
    except (OSError, ValueError) as error:
        raise _write_error(target, error) from error
    return target


def write_bytes(
    path: str | os.PathLike[str], content: bytes, *, overwrite: bool = False
) -> Path:
    """Write a file completely, or change nothing."""
    target = check_file(path, overwrite=overwrite)
    temporary = ""
    try:
        descriptor, temporary = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name[:40]}."
        )
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)  # the mode of any file, not of a temporary one
        check_file(target, overwrite=overwrite)  # another process may have written it meanwhile
        Path(temporary).replace(target)
    except OSError as error:
        raise _write_error(target, error) from error
    finally:
        if temporary:
            with suppress(OSError):
                Path(temporary).unlink()
    return target


def _exists(target: Path) -> bool:
    """Whether anything has this name; raises where no file can have it."""
    try:
        target.lstat()
    except FileNotFoundError:
        return False
    return True


def _is_ours(target: Path) -> bool:
    """Whether a file is one of our pages, or a picture of the format its suffix names."""
    with target.open("rb") as file:
        start = file.read(200)
    beginnings = _BEGINNINGS.get(target.suffix.lower())
    return start.startswith(beginnings) if beginnings else MARK.encode() in start


def _write_error(target: Path, error: Exception) -> StoreError:
    return StoreError(
        f"cannot write {str(target)!r}: {getattr(error, 'strerror', None) or error}",
        hint="choose another place; nothing was changed",
        slug="file-write",
    )

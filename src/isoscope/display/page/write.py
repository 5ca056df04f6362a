"""Writing a file whole: beside its place first, then put there; never over what is not ours."""

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
    """Return where a file will be written, or raise before any work is done in vain."""
    target = Path(path)
    try:
        if not _there(target):
            if not target.resolve().parent.is_dir():
                raise NotADirectoryError(f"there is no folder {str(target.parent)!r}")
            return target
        if not overwrite:
            raise StoreError(
                f"expected a new file, got {str(target)!r}, which exists",
                hint="choose another name, or replace it with --overwrite",
                slug="file-exists",
            )
        if target.is_symlink() or not target.is_file() or not _ours(target):
            raise StoreError(
                f"cannot overwrite {str(target)!r}: isoscope did not write it",
                hint="choose another name, or remove it yourself",
                slug="file-foreign",
            )
    except (OSError, ValueError) as error:
        raise _cannot(target, error) from error
    return target


def write_text(path: str | os.PathLike[str], text: str, *, overwrite: bool = False) -> Path:
    """Write text whole, or leave everything as it was."""
    return write_bytes(path, text.encode("utf-8", "backslashreplace"), overwrite=overwrite)


def write_bytes(path: str | os.PathLike[str], content: bytes, *, overwrite: bool) -> Path:
    """Write a file whole, or leave everything as it was."""
    target = check_file(path, overwrite=overwrite)
    aside = ""
    try:
        where, aside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.")
        with os.fdopen(where, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        Path(aside).chmod(0o666 & ~mask)  # as any file, not as a temporary one
        check_file(target, overwrite=overwrite)  # someone else may have been faster
        Path(aside).replace(target)
    except OSError as error:
        raise _cannot(target, error) from error
    finally:
        if aside:
            with suppress(OSError):
                Path(aside).unlink()
    return target


def _there(target: Path) -> bool:
    """Whether there is anything under this name; raises where there can be no such name."""
    try:
        target.lstat()
    except FileNotFoundError:
        return False
    return True


def _ours(target: Path) -> bool:
    """Whether a file is a page of ours, or a picture of the kind its name says."""
    with target.open("rb") as file:
        start = file.read(200)
    beginnings = _BEGINNINGS.get(target.suffix.lower())
    if beginnings:
        return start.startswith(beginnings)
    return MARK.encode() in start


def _cannot(target: Path, error: Exception) -> StoreError:
    return StoreError(
        f"cannot write {str(target)!r}: {getattr(error, 'strerror', None) or error}",
        hint="choose another place; what was there is untouched",
        slug="file-write",
    )

"""The working folder of a run that is not finished: its lock, spec, plan and stages."""

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from isoscope.errors import StoreError
from isoscope.store.folder import BEGUN, PLAN, check_target, unfinished
from isoscope.store.lock import Lock

NOTES = "notes.json"


class Begun(msgspec.Struct, frozen=True):
    """What a run was begun with."""

    id: str
    resolved: dict[str, Any]
    plan: str  # checksum of the plan


class Working:
    """A folder that holds the units of a run until it is whole; a context manager.

    Without a target it is a temporary folder, made only where somebody asks for it. Left
    by an error before any unit was kept, a new folder is removed.
    """

    def __init__(self, target: Path | None, *, overwrite: bool = False) -> None:
        self.target = target
        self.overwrite = overwrite
        self.notes: list[str] = []
        self._spare: TemporaryDirectory[str] | None = None
        self._lock: Lock | None = None
        self._fresh = False
        self.folder: Path | None = None if target is None else _folder_for(target)

    def __enter__(self) -> "Working":
        if self.folder is not None:
            self._fresh = not self.folder.exists()
            with _writing(self.folder):
                self.folder.mkdir(parents=True, exist_ok=True)
                self._lock = Lock(self.folder)
                self._lock.acquire()
                self._load_notes()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._lock is not None and self.folder is not None:
            keep = kind is not None and any(self.folder.glob("stage-*/*-*-*"))
            self._lock.release()
            if (kind is not None and self._fresh and not keep) or kind is None:
                shutil.rmtree(self.folder, ignore_errors=True) if self._is_ours else None
        if self._spare is not None:
            self._spare.cleanup()

    @property
    def _is_ours(self) -> bool:
        """Whether the folder is one of units; a finished run stands there after saving."""
        return self.folder is not None and unfinished(self.folder)

    @property
    def name(self) -> str:
        """The name of the run, for messages."""
        return "" if self.target is None else self.target.name

    def begun(self) -> Begun | None:
        """Return what an unfinished run was begun with; None for a new one."""
        path = None if self.folder is None else self.folder / BEGUN
        if path is None or not path.exists():
            return None
        try:
            return msgspec.json.decode(path.read_bytes(), type=Begun)
        except (msgspec.MsgspecError, OSError) as error:
            raise self._damaged(path, error) from error

    def begin(self, id: str, resolved: Mapping[str, Any], plan: bytes) -> None:
        """Write plan and spec; the spec last, since it says that the plan is whole."""
        if self.folder is None:
            return
        begun = Begun(id, dict(resolved), _digest(plan))
        with _writing(self.folder):
            self.restart()
            _replace(self.folder / PLAN, plan)
            _replace(self.folder / BEGUN, msgspec.json.encode(begun))

    def read_plan(self, begun: Begun) -> bytes:
        """Return the plan of an unfinished run."""
        assert self.folder is not None
        path = self.folder / PLAN
        try:
            content = path.read_bytes()
        except OSError as error:
            raise self._damaged(path, error) from error
        if _digest(content) != begun.plan:
            raise self._damaged(path, "its checksum is not the one that was written")
        return content

    def restart(self) -> None:
        """Remove what an earlier run left in the folder, but for the lock."""
        assert self.folder is not None
        for each in self.folder.iterdir():
            if each.name != "lock":
                shutil.rmtree(each) if each.is_dir() else each.unlink()
        self.notes.clear()

    def stage(self, number: int, after: str = "") -> Path | None:
        """Return the folder of a stage; one that built on another state is emptied."""
        if self.folder is None:
            return None
        folder = self.folder / f"stage-{number}"
        mark = folder / "after"
        with _writing(self.folder):
            if folder.exists() and after and (not mark.exists() or mark.read_text() != after):
                shutil.rmtree(folder)
            folder.mkdir(exist_ok=True)
            if after and not mark.exists():
                _replace(mark, after.encode())
        return folder

    def scratch(self) -> Path:
        """Return a folder where units leave what survives a kill."""
        place = (self.folder if self.folder is not None else self.spare()) / "scratch"
        place.mkdir(exist_ok=True)
        return place

    def spare(self) -> Path:
        """Return a temporary folder that is removed at the end."""
        if self._spare is None:
            self._spare = TemporaryDirectory(prefix="isoscope-")
        return Path(self._spare.name)

    def note(self, text: str) -> None:
        """Record something that readers of the run should know; it survives a kill."""
        if text in self.notes:
            return
        self.notes.append(text)
        if self.folder is not None:
            _replace(self.folder / NOTES, msgspec.json.encode(self.notes))

    def _load_notes(self) -> None:
        assert self.folder is not None
        with suppress(OSError, msgspec.MsgspecError):
            self.notes = msgspec.json.decode((self.folder / NOTES).read_bytes(), type=list[str])

    def _damaged(self, path: Path, why: object) -> StoreError:
        return StoreError(
            f"cannot read {str(path)!r}: {why}",
            hint="what was begun there is damaged: choose another folder, or begin again "
            "with --overwrite",
            slug="store-damaged",
        )


def open_target(
    output: str | os.PathLike[str] | None, overwrite: bool, *, resume: bool = True
) -> Path | None:
    """Return the folder a run will be written to, one that was begun included."""
    return None if output is None else check_target(output, overwrite, resume=resume)


def _folder_for(target: Path) -> Path:
    """Return where units are kept: in the folder itself, unless a run is to be replaced."""
    if not target.exists() or unfinished(target):
        return target
    return target.parent / f".isoscope-{target.name[:40]}-units"


def _replace(path: Path, content: bytes) -> None:
    aside = path.with_name(f"{os.getpid()}-{path.name}.part")
    with aside.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)


class _writing:  # noqa: N801 - reads as a statement
    """Turn faults of the disk into errors of ours."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, OSError):
            raise StoreError(
                f"cannot write a run to {str(self.folder)!r}: {error.strerror or error}",
                hint="choose another folder, or free some space",
                slug="store-write",
            ) from error


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()

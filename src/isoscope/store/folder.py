"""Saving a run: a new folder beside the old one, filled, then put in its place."""

import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from isoscope.accumulate.survey import Survey
from isoscope.errors import RunExistsError, StoreError
from isoscope.store.atomic import put_in_place, staging, sync, writing
from isoscope.store.origin import Origin, versions
from isoscope.store.readings import write_readings
from isoscope.store.schema import (
    CONFIG,
    FILES,
    MANIFEST,
    READINGS,
    SCHEMA,
    STATE,
    FileMark,
    Manifest,
    plain_texts,
    plain_values,
)
from isoscope.store.state import State
from isoscope.types import Reading

BEGUN, PLAN = "begun.json", "plan.msgpack"
# What an unfinished run may hold; the first two are of versions before there were plans.
WORKING = {"units", "again", BEGUN, PLAN, "lock", "notes.json", "scratch"}


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


def is_unfinished(target: Path) -> bool:
    """Whether a folder holds units of a run that is not whole yet, and nothing else."""
    if not target.is_dir() or (target / MANIFEST).exists():
        return False
    return all(
        each.name in WORKING or each.name.startswith("stage-") or each.suffix == ".part"
        for each in target.iterdir()
    )


def save(
    path: str | os.PathLike[str],
    state: State | Survey,
    readings: Sequence[Reading],
    origin: Origin,
    config: Mapping[str, object],
    overwrite: bool = False,
    *,
    resume: bool = False,
) -> Path:
    """Write a run folder whole, or leave everything as it was.

    The folder in which the units of this run were kept is replaced by it.
    """
    target = check_target(path, overwrite, resume=resume)
    with writing(target, "what was there is untouched"), staging(target) as folder:
        (State(state) if isinstance(state, Survey) else state).write(folder / STATE)
        write_readings(folder / READINGS, readings)
        (folder / CONFIG).write_bytes(_yaml(config))
        for name in (STATE, READINGS, CONFIG):
            sync(folder / name)
        marks = {name: mark(folder / name) for name in (STATE, READINGS)}
        (folder / MANIFEST).write_bytes(_manifest(readings, origin, marks))
        sync(folder / MANIFEST)
        check_target(path, overwrite, resume=resume)  # someone else may have been faster
        put_in_place(folder, target)
    return target


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
    foreign = sorted(each.name for each in target.iterdir() if each.name not in FILES)
    if foreign:
        raise StoreError(
            f"cannot overwrite {str(target)!r}: it also holds {foreign[0]!r}",
            hint="move what is not part of the run elsewhere, or choose another name",
            slug="store-foreign",
        )


def _may_write(target: Path) -> None:
    with suppress(FileNotFoundError):
        target.lstat()  # raises the others: a name too long, a file where a folder should be
    nearest = next(parent for parent in target.parents if parent.exists())
    if not nearest.is_dir():
        raise NotADirectoryError(f"{str(nearest)!r} is not a folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise PermissionError(f"{str(nearest)!r} may not be written to")


def _manifest(readings: Sequence[Reading], origin: Origin, marks: dict[str, FileMark]) -> bytes:
    manifest = Manifest(
        schema=SCHEMA,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        origin=origin.to_dict(),
        versions=versions(),
        command=plain_texts(sys.argv),
        files=marks,
        left_out=plain_texts(getattr(readings, "left_out", ())),
        warnings=plain_texts(dict.fromkeys(w for each in readings for w in each.warnings)),
    )
    return msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"


def _yaml(config: Mapping[str, object]) -> bytes:
    import yaml

    text = yaml.safe_dump(plain_values(dict(config)), sort_keys=False, allow_unicode=True)
    return text.encode("utf-8")


def mark(path: Path) -> FileMark:
    """Return size and checksum of a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32))
        return FileMark(bytes=os.fstat(file.fileno()).st_size, blake2b=digest.hexdigest())

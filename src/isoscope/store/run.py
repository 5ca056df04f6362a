"""A run read back from its folder; nothing in it is trusted until it has been checked."""

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from isoscope.errors import IsoscopeError, StoreError
from isoscope.store.folder import mark
from isoscope.store.origin import Origin
from isoscope.store.parquet import read_readings
from isoscope.store.record import Settings
from isoscope.store.schema import (
    CONFIG,
    MANIFEST,
    READINGS,
    SCHEMA,
    STATE,
    Edition,
    Manifest,
    Mark,
)
from isoscope.store.state import read_state
from isoscope.store.stream import StateReader, read_trouble
from isoscope.store.swap import set_aside
from isoscope.types import Reading

if TYPE_CHECKING:
    from isoscope.accumulate.survey import Survey

LARGEST = 64 * 2**20  # bytes of run.json and config.yaml that are read at all


@dataclass(frozen=True)
class Run:
    """One run folder. Readings are at hand; the survey is read when it is asked for.

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
    def config(self) -> dict[str, Any]:
        """The config that measures this run again."""
        import yaml

        try:
            config = yaml.safe_load(_content(self.path / CONFIG))
        except (yaml.YAMLError, OSError, ValueError, RecursionError) as error:
            raise _damaged(self.path / CONFIG, error) from error
        if not isinstance(config, dict):
            raise _damaged(self.path / CONFIG, "expected keys and values")
        return config

    @property
    def sites(self) -> tuple[str, ...]:
        """The sites of which something was collected, each once."""
        return self._reader.sites

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """Site and class or variant of everything that was collected."""
        return self._reader.places

    def by_site(self, sites: Sequence[str] | None = None) -> "Iterator[Survey]":
        """Yield what was collected a site at a time: memory holds one of them."""
        for site in self.sites if sites is None else sites:
            yield self.survey_of(site)

    @cached_property
    def survey(self) -> "Survey":
        """What was collected, ready to be merged or read."""
        from isoscope.accumulate.survey import Survey

        path = self.path / STATE
        with _blame(path):
            _same(path, self.manifest.files[STATE])
            return Survey.from_state(*read_state(path))

    def survey_of(self, site: str) -> "Survey":
        """What was collected at one site; the others stay on disk."""
        reader = self._reader
        with _blame(reader.path):
            return reader.survey_of(site)

    def survey_at(self, place: tuple[str, str]) -> "Survey":
        """What was collected at one site of one class or variant; empty where nothing was."""
        reader = self._reader
        with _blame(reader.path):
            return reader.survey([place])

    @cached_property
    def trouble(self) -> dict[str, str]:
        """Sites where NaN or infinity was found, and at which document.

        It stands in the header of the state, which is read without its gigabytes.
        """
        path = self.path / STATE
        with _blame(path):
            return read_trouble(path)

    @cached_property
    def _reader(self) -> StateReader:
        path = self.path / STATE
        with _blame(path):
            _same(path, self.manifest.files[STATE])
            return StateReader(path)


@contextmanager
def _blame(path: Path) -> Generator[None]:
    """Report whatever goes wrong while a file is read as damage of that file."""
    try:
        yield
    except IsoscopeError:
        raise
    except Exception as error:
        raise _damaged(path, error) from error


def load(path: str | os.PathLike[str]) -> Run:
    """Read a run folder, or raise a StoreError that says what is wrong with it."""
    folder = Path(path)
    manifest = _manifest(folder)
    try:
        origin = Origin.from_dict(manifest.origin)
        if origin.schema != manifest.schema:
            raise ValueError(f"expected schema {manifest.schema}, got {origin.schema}")
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        raise _damaged(folder / MANIFEST, error) from error
    current = folder
    try:
        current = folder / STATE
        _same_size(current, manifest.files[STATE])
        current = folder / READINGS
        _same(current, manifest.files[READINGS])
        readings = read_readings(current)
    except KeyError as error:
        raise _damaged(folder / MANIFEST, f"it has no checksum of {error}") from error
    except (OSError, ValueError) as error:
        raise _damaged(current, error) from error
    return Run(path=folder, manifest=manifest, origin=origin, readings=readings)


def open_run(run: str | os.PathLike[str] | Run) -> Run:
    """Return a run: itself if it is loaded, otherwise read from its folder."""
    return run if isinstance(run, Run) else load(run)


def _manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    try:
        if not path.is_file():
            raise _no_run(folder)
        content = _content(path)
        edition = msgspec.json.decode(content, type=Edition).schema
        if edition > SCHEMA:
            raise StoreError(
                f"expected a run of schema {SCHEMA} or less, got {edition} in {str(folder)!r}",
                hint="upgrade with: pip install --upgrade isoscope",
                slug="store-newer",
            )
        if edition < 1:
            raise ValueError(f"expected a schema of at least 1, got {edition}")
        return msgspec.json.decode(content, type=Manifest)
    except (msgspec.MsgspecError, OSError, ValueError, RecursionError) as error:
        raise _damaged(path, error) from error


def _no_run(folder: Path) -> StoreError:
    if folder.is_dir():
        return StoreError(
            f"expected a run folder, got {str(folder)!r}, which has no {MANIFEST}",
            hint="name a folder written by -o; an unfinished run has to be measured again",
            slug="store-unfinished",
        )
    if folder.exists():
        return StoreError(
            f"expected a run folder, got the file {str(folder)!r}",
            hint="name a folder written by -o, or measure the file first",
            slug="store-missing",
        )
    old = set_aside(folder)
    return StoreError(
        f"no run folder is called {str(folder)!r}",
        hint=f"overwriting it was interrupted; rename {str(old)!r} back"
        if old
        else "check the path; runs are written by -o",
        slug="store-missing",
    )


def _same_size(path: Path, expected: Mark) -> None:
    size = path.stat().st_size
    if size != expected.bytes:
        raise ValueError(f"expected {expected.bytes} bytes, got {size}")


def _same(path: Path, expected: Mark) -> None:
    _same_size(path, expected)
    if mark(path).blake2b != expected.blake2b:
        raise ValueError("its checksum is not the one that was written")


def _content(path: Path) -> bytes:
    if not path.is_file():
        raise OSError("it is not there")
    if path.stat().st_size > LARGEST:
        raise ValueError(f"expected at most {LARGEST} bytes, got {path.stat().st_size}")
    return path.read_bytes()


def _damaged(path: Path, why: object) -> StoreError:
    why = (why.strerror or why) if isinstance(why, OSError) else why
    return StoreError(
        f"cannot read {str(path)!r}: {why}",
        hint="the run is damaged; copy it again, or measure it again with its config.yaml",
        slug="store-damaged",
    )

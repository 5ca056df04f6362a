"""The state of a run: a safetensors file of arrays, whose header says what they are.

States are written, read and merged place by place (site and class of rows), so that memory
holds a few places and not a model: arrays go to a temporary file one after the other, and are
put behind the header when that is known.
"""

import hashlib
import json
import shutil
import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Protocol, TypedDict, cast

import msgspec
import numpy as np

from isoscope.accumulate.layout import check_place
from isoscope.accumulate.survey import (
    Place,
    PlaceState,
    Survey,
    SurveyState,
    join_keys,
    same_in_all,
    shared_keys,
)
from isoscope.store.atomic import SpareFolder, link_or_copy, writing
from isoscope.store.schema import plain_values
from isoscope.types import Array

META = "survey"
_THREADS = 2  # places that are merged at a time, while another is written
Saved = tuple[SurveyState, dict[str, Array]]  # what `Survey.to_state` returns
_TYPES = {
    "float64": "F64",
    "float32": "F32",
    "uint64": "U64",
    "int64": "I64",
    "uint8": "U8",
}


_NAMES = {name: dtype for dtype, name in _TYPES.items()}


class _TensorFile(Protocol):
    """A file of which arrays are read one by one."""

    def keys(self) -> Sequence[str]: ...
    def get_tensor(self, name: str, /) -> Array: ...


class _WholeFile(_TensorFile, Protocol):
    """A safetensors file."""

    def metadata(self) -> Mapping[str, str] | None: ...


class _ArrayEntry(TypedDict):
    """Where an array lies in a safetensors file."""

    dtype: str
    shape: list[int]
    data_offsets: list[int]


class StateHeader(msgspec.Struct):
    """The description of a survey in the header of its state; see `Survey.to_state`."""

    places: list[PlaceState]
    trouble: dict[str, str] = {}
    seen: dict[str, int] = {}
    same: dict[str, str] = {}


class StateWriter:
    """Takes surveys of single places and leaves one state file.

    What it has taken can be read while the file is not finished: summaries that only wait
    to be merged never become one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._data_path = path.with_name(f"{path.name}.data")
        self._data = self._data_path.open("xb")
        self._header = StateHeader([])
        self._arrays: dict[str, _ArrayEntry] = {}

    def __enter__(self) -> "StateWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.finish()
        finally:
            self.discard()

    def discard(self) -> None:
        """Delete what was taken; a finished file stays."""
        self._data.close()
        self._data_path.unlink(missing_ok=True)

    def reader(self) -> "StateReader":
        """Return a reader of what was taken so far, as long as it is not discarded."""
        self._data.flush()
        return StateReader(None, _Unfinished(self._data_path, self._arrays), self._header)

    def add(self, saved: Saved) -> None:
        """Write what `Survey.to_state` returned behind what is there."""
        meta, arrays = saved
        header = msgspec.convert(meta, StateHeader)
        self.note(header.trouble)
        first = len(self._header.places)
        self._header.places += header.places
        for name, array in arrays.items():
            number, _, rest = name.partition(".")
            array = np.asarray(array, order="C")
            begin = self._data.tell()
            self._data.write(array.reshape(-1).view(np.uint8).data)
            self._arrays[f"{first + int(number)}.{rest}"] = {
                "dtype": _TYPES[array.dtype.name],
                "shape": list(array.shape),
                "data_offsets": [begin, self._data.tell()],
            }

    def note(
        self,
        trouble: Mapping[str, str],
        seen: Mapping[str, int] | None = None,
        same: Mapping[str, str] | None = None,
    ) -> None:
        """Record sites that could not be measured, rows of sources, and sites with equal rows.

        Of two reasons the first stays.
        """
        self._header.trouble = first_reasons(self._header.trouble, trouble)
        self._header.seen.update(seen or {})
        self._header.same.update(same or {})

    def finish(self) -> None:
        """Write the file: the header, and behind it what was taken."""
        self._data.flush()
        meta = {
            "places": plain_values(self._header.places),
            "trouble": plain_values(self._header.trouble),
        }
        if self._header.seen:
            meta["seen"] = plain_values(self._header.seen)
        if self._header.same:
            meta["same"] = plain_values(self._header.same)
        header = {"__metadata__": {META: json.dumps(meta, allow_nan=False)}, **self._arrays}
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with self.path.open("xb") as file, self._data_path.open("rb") as data:
            file.write(struct.pack("<Q", len(text)))
            file.write(text)
            shutil.copyfileobj(data, file, 1 << 20)


class _Unfinished:
    """The arrays of a state file that has no header yet; they outlive its name."""

    def __init__(self, path: Path, arrays: Mapping[str, _ArrayEntry]) -> None:
        self._arrays = dict(arrays)
        empty = not path.stat().st_size
        self._data = np.zeros(0, np.uint8) if empty else np.memmap(path, np.uint8, mode="r")

    def keys(self) -> Sequence[str]:
        return tuple(self._arrays)

    def get_tensor(self, name: str, /) -> Array:
        entry = self._arrays[name]
        part = self._data[slice(*entry["data_offsets"])]
        return np.array(part.view(_NAMES[entry["dtype"]])).reshape(entry["shape"])


class StateReader:
    """A state file of which one place at a time is read."""

    def __init__(
        self,
        path: Path | None,
        file: _TensorFile | None = None,
        header: StateHeader | None = None,
        *,
        trusted: bool = True,
    ) -> None:
        self.path = path  # None of one that is not finished
        self._unchecked = not trusted  # whether its arrays may be anything
        if path is not None:
            from safetensors import safe_open

            whole = cast(_WholeFile, safe_open(path, framework="numpy"))
            text = (whole.metadata() or {})[META]
            file, header = whole, msgspec.json.decode(text, type=StateHeader)
        assert file is not None and header is not None
        self._file = file
        self.trouble, self.seen = header.trouble, header.seen
        self.same = header.same  # sites that have the rows of another
        self._places: dict[Place, tuple[int, PlaceState]] = {}
        for number, place in enumerate(header.places):
            alike = [site for site, source in self.same.items() if source == place["site"]]
            for site in (place["site"], *alike):
                here: PlaceState = {**place, "site": site}
                self._places[site, place["variant"]] = number, here
        self.places = tuple(self._places)  # site and class or variant
        names = tuple(dict.fromkeys(site for site, _ in self._places))
        self._keys = shared_keys(names)  # of attention heads
        parts = set(self._keys.values())
        self.sites = tuple(name for name in names if name not in parts)
        self._names: dict[int, list[str]] = {}
        for name in self._file.keys():  # noqa: SIM118
            self._names.setdefault(int(name.partition(".")[0]), []).append(name)

    def part(self, places: Iterable[Place]) -> Survey:
        """Return a survey of some places."""
        found: list[PlaceState] = []
        arrays: dict[str, Array] = {}
        for place in places:
            if place in self._places:
                number, meta = self._places[place]
                here = {
                    name.partition(".")[2]: self._file.get_tensor(name)
                    for name in self._names.get(number, ())
                }
                if self._unchecked:
                    _check(meta, here)
                for name, array in here.items():
                    # Merging happens in place.
                    arrays[f"{len(found)}.{name}"] = (
                        array if array.flags.writeable else array.copy()
                    )
                found.append(meta)
        return Survey.from_state({"places": found, "trouble": {}}, arrays)

    def whole_survey(self) -> Survey:
        """Return everything in the file."""
        survey = self.part(place for place in self._places if place[0] not in self.same)
        survey.trouble, survey.seen, survey.same = self.trouble, self.seen, self.same
        return survey

    def survey_of(self, site: str) -> Survey:
        """Return a survey of one site, with all its classes and variants."""
        survey = self.part(place for place in self._places if place[0] == site)
        keys = self._keys.get(site)
        if keys is not None:
            own = self.part([(keys, "all")]).held.get((keys, "all"), {})
            survey.held = join_keys(survey.held, own)
        return survey


def _check(place: PlaceState, arrays: Mapping[str, Array]) -> None:
    """Raise ValueError where the arrays of a place are not those of its accumulators."""
    states: dict[str, dict[str, Array]] = {}
    for name, array in arrays.items():
        kind, _, part = name.partition(".")
        states.setdefault(kind, {})[part] = array
    check_place(place["kinds"], states)


class State:
    """The merged summaries of a run, in memory or in a file."""

    def __init__(self, content: Survey | StateReader | Path) -> None:
        self._content = StateReader(content) if isinstance(content, Path) else content
        self.trouble = self._content.trouble  # sites that produced NaN or infinity: where
        self.seen = self._content.seen  # the rows of each source
        self.same = self._content.same  # sites that have the rows of another

    @property
    def sites(self) -> tuple[str, ...]:
        """The sites that have summaries, in the order they were first seen."""
        return self._content.sites

    def survey_of(self, site: str) -> Survey:
        """Return the summaries of one site."""
        if isinstance(self._content, StateReader):
            return self._content.survey_of(site)
        return Survey(self._content.of_site(site))

    def sites_in(self, order: Sequence[str]) -> tuple[str, ...]:
        """Return the sites that have summaries, those named in `order` first."""
        here = self.sites
        return tuple(dict.fromkeys([*(site for site in order if site in here), *here]))

    def overlay(self, second: "State", spare: Path) -> "State":
        """Return the state of a first pass with what a second one has found beside it."""
        if isinstance(self._content, Survey) and isinstance(second._content, Survey):
            for site, why in second.trouble.items():
                self._content.drop(site, why)
            for place, found in second._content.held.items():
                if place[0] not in self._content.trouble:
                    self._content.held.setdefault(place, {}).update(found)
            return self
        whole = spare / "whole.state"
        first = self.file(lambda: spare, "first.state")
        with writing(spare):
            join_states(first, second.file(lambda: spare, "second.state"), whole, overlay=True)
        return State(whole)

    def write(self, path: Path) -> None:
        """Write the state file, every site with summaries of its own.

        A file that already is like that gets a second name.
        """
        if isinstance(self._content, StateReader) and self._content.path and not self.same:
            link_or_copy(self._content.path, path)
            return
        with StateWriter(path) as out:
            for place in self._content.places:
                out.add(self._content.part([place]).to_state())
            out.note(self.trouble, self.seen)

    def file(self, spare: Callable[[], Path], name: str) -> Path:
        """Return a file that holds the state; one in memory is written to the spare folder."""
        if isinstance(self._content, StateReader) and self._content.path:
            return self._content.path
        path = spare() / name
        with writing(path.parent):
            path.unlink(missing_ok=True)
            write_state(path, self._content)
        return path

    def digest(self) -> str:
        """Return what identifies this content: of its bytes as a file."""
        with SpareFolder() as folder:
            return file_digest(self.file(lambda: Path(folder), "state"))


class Readable(Protocol):
    """A state of which one place at a time is read: in memory, in a file, or two as one."""

    @property
    def trouble(self) -> Mapping[str, str]:
        """Sites that could not be measured: why."""
        ...

    @property
    def seen(self) -> Mapping[str, int]:
        """The rows of each source."""
        ...

    @property
    def same(self) -> Mapping[str, str]:
        """Sites that have the rows of another, which holds the summaries of both."""
        ...

    @property
    def places(self) -> Sequence[Place]:
        """Site and class or variant of all summaries."""
        ...

    @property
    def sites(self) -> tuple[str, ...]:
        """The sites that have summaries, each once."""
        ...

    def part(self, places: Iterable[Place], /) -> Survey:
        """Return a survey of some places."""
        ...


class UsedUp:
    """A survey in memory of which every place is read once, and let go of then.

    What is made of a place, to write it, is as large as the place itself.
    """

    def __init__(self, survey: Survey) -> None:
        self._survey = survey
        self.trouble, self.seen, self.same = survey.trouble, survey.seen, survey.same
        self.places, self.sites = survey.places, survey.sites

    def part(self, places: Iterable[Place]) -> Survey:
        """Return a survey of some places."""
        wanted = list(places)
        found = self._survey.part(wanted)
        for place in wanted:
            if place[0] not in self.same.values():  # else another site has these rows too
                self._survey.held.pop(place, None)
        return found


class AsRead(UsedUp):
    """A survey in memory whose parts are what its file would give, without the file."""

    def part(self, places: Iterable[Place]) -> Survey:
        """Return a survey of some places."""
        return Survey.from_state(*super().part(places).to_state())


class Joined:
    """Two states as one: each place is merged when it is read; one in memory is used up.

    With `overlay`, the second is a later pass over the same rows, and what it has found lies
    beside what the first has.
    """

    def __init__(self, first: Readable, second: Readable, *, overlay: bool = False) -> None:
        self._first, self._second, self._overlay = first, second, overlay
        self.trouble = first_reasons(first.trouble, second.trouble)
        names = dict.fromkeys((*first.seen, *second.seen))
        self.seen: Mapping[str, int] = {
            name: first.seen.get(name, 0) + (0 if overlay else second.seen.get(name, 0))
            for name in names
            if not overlay or name in first.seen
        }
        same = same_in_all([first, second])
        self.same = {site: of for site, of in same.items() if site not in self.trouble}
        self.places: tuple[Place, ...] = tuple(
            place
            for place in dict.fromkeys((*first.places, *second.places))
            if place[0] not in self.trouble
        )
        self.sites = tuple(dict.fromkeys(site for site, _ in self.places))

    def part(self, places: Iterable[Place]) -> Survey:
        """Return a survey of some places."""
        wanted = list(places)
        survey, more = _as_read(self._first, wanted), _as_read(self._second, wanted)
        if not self._overlay:
            survey.merge(more)
            return survey
        for place in more.held:
            survey.held.setdefault(place, {}).update(more.held[place])
        return survey


def _as_read(content: Readable, places: Sequence[Place]) -> Survey:
    """Return some places as a file would give them, also where two states were just merged."""
    part = content.part(places)
    return Survey.from_state(*part.to_state()) if isinstance(content, Joined) else part


def write_state(path: Path, content: Readable) -> None:
    """Write a state file, place by place."""
    with StateWriter(path) as out:
        copy_state(content, out)


def copy_state(content: Readable, out: StateWriter) -> None:
    """Write a state place by place, in their order; the next ones are merged meanwhile."""
    places = [place for place in content.places if place[0] not in content.same]
    for part in _in_order(lambda place: content.part([place]).to_state(), places):
        out.add(part)
    out.note(content.trouble, content.seen, content.same)


def _in_order(work: Callable[[Place], Saved], places: Sequence[Place]) -> Iterator[Saved]:
    """Yield what is made of each place, in their order; a few are made at a time."""
    waiting: deque[Future[Saved]] = deque()
    with ThreadPoolExecutor(_THREADS) as pool:
        for place in places:
            waiting.append(pool.submit(work, place))
            if len(waiting) > _THREADS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def join_states(left: Path, right: Path, out: Path, *, overlay: bool = False) -> None:
    """Write the merge of two state files, place by place; see `Joined`."""
    write_state(out, Joined(StateReader(left), StateReader(right), overlay=overlay))


def first_reasons(ours: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, str]:
    """Return the sites in trouble of both; of a site that is in both the first reason."""
    return {**ours, **{site: why for site, why in theirs.items() if site not in ours}}


def file_digest(path: Path, label: str = "") -> str:
    """Return a checksum of a label and the content of a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(
            file, lambda: hashlib.blake2b(label.encode(), digest_size=16)
        )
    return digest.hexdigest()

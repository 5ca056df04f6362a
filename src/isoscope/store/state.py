"""States written and read a place at a time, so that memory holds one place and not a model.

The file is a safetensors file like any other: its arrays are written one after the other to
a file beside it, and put behind the header when that is known.
"""

import json
import shutil
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isoscope.store.schema import plain_values
from isoscope.store.state import META, owned, state_file
from isoscope.types import Array

if TYPE_CHECKING:
    from isoscope.accumulate.survey import Survey

_TYPES = {
    "float64": "F64",
    "float32": "F32",
    "uint64": "U64",
    "int64": "I64",
    "uint8": "U8",
}


class StateWriter:
    """Takes surveys of single places and leaves one state file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._aside = path.with_name(f"{path.name}.data")
        self._data = self._aside.open("xb")
        self._places: list[dict[str, Any]] = []
        self._arrays: dict[str, dict[str, Any]] = {}
        self._trouble: dict[str, str] = {}
        self._seen: dict[str, int] = {}

    def __enter__(self) -> "StateWriter":
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        self._data.close()
        try:
            if kind is None:
                self._finish()
        finally:
            self._aside.unlink(missing_ok=True)

    def add(self, survey: "Survey") -> None:
        """Write what a survey holds behind what is there."""
        meta, arrays = survey.to_state()
        self.note(meta["trouble"])
        first = len(self._places)
        self._places += meta["places"]
        for name, array in arrays.items():
            number, _, rest = name.partition(".")
            self._write(f"{first + int(number)}.{rest}", array)

    def note(self, trouble: Mapping[str, str], seen: Mapping[str, int] | None = None) -> None:
        """Record sites that could not be measured, and rows of sources; first reasons stay."""
        self._trouble = first_reasons(self._trouble, trouble)
        self._seen.update(seen or {})

    def _write(self, name: str, array: Array) -> None:
        array = np.asarray(array, order="C")
        begin = self._data.tell()
        self._data.write(array.reshape(-1).view(np.uint8).data)
        self._arrays[name] = {
            "dtype": _TYPES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [begin, self._data.tell()],
        }

    def _finish(self) -> None:
        meta = plain_values({"places": self._places, "trouble": self._trouble})
        if self._seen:
            meta["seen"] = self._seen
        header = {"__metadata__": {META: json.dumps(meta, allow_nan=False)}, **self._arrays}
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with self.path.open("xb") as file, self._aside.open("rb") as data:
            file.write(struct.pack("<Q", len(text)))
            file.write(text)
            shutil.copyfileobj(data, file, 1 << 20)


class StateReader:
    """A state file of which one place at a time is read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = state_file(path)
        meta = json.loads((self._file.metadata() or {})[META])
        self.trouble: dict[str, str] = dict(meta.get("trouble", {}))
        self.seen: dict[str, int] = dict(meta.get("seen", {}))
        self._places: dict[tuple[str, str], tuple[int, dict[str, Any]]] = {
            (place["site"], place["variant"]): (number, place)
            for number, place in enumerate(meta["places"])
        }
        self._names: dict[int, list[str]] = {}
        for name in self._file.keys():  # noqa: SIM118
            self._names.setdefault(int(name.partition(".")[0]), []).append(name)
        self._sites: dict[str, list[tuple[str, str]]] = {}
        for place in self._places:
            self._sites.setdefault(place[0], []).append(place)

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """Site and class or variant of everything that is held."""
        return tuple(self._places)

    @property
    def sites(self) -> tuple[str, ...]:
        """The sites of these places, each once."""
        return tuple(self._sites)

    def digest(self, place: tuple[str, str]) -> str:
        """Return what tells this place's content from any other."""
        digest = blake2b(digest_size=16)
        number, _ = self._places[place]
        for name in sorted(self._names.get(number, ())):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(self._file.get_tensor(name)).data)
        return digest.hexdigest()

    def survey(self, places: Iterable[tuple[str, str]]) -> "Survey":
        """Return a survey of some places."""
        from isoscope.accumulate.survey import Survey

        found: list[dict[str, Any]] = []
        arrays: dict[str, Array] = {}
        for place in places:
            if place in self._places:
                number, meta = self._places[place]
                for name in self._names.get(number, ()):
                    fresh = f"{len(found)}.{name.partition('.')[2]}"
                    arrays[fresh] = owned(self._file.get_tensor(name))
                found.append(meta)
        return Survey.from_state({"places": found, "trouble": {}}, arrays)

    def by_site(self, order: Sequence[str] = ()) -> Iterator["Survey"]:
        """Yield a survey of each site, with all its classes and variants.

        Sites come in the order given, those not named in it behind the others.
        """
        named = [site for site in order if site in self._sites]
        for site in dict.fromkeys([*named, *self._sites]):
            yield self.survey_of(site)

    def survey_of(self, site: str) -> "Survey":
        """Return a survey of one site, with all its classes and variants."""
        return self.survey(self._sites.get(site, ()))


def read_trouble(path: Path) -> dict[str, str]:
    """Return the sites that could not be measured, and why, from the header of a state."""
    meta = json.loads((state_file(path).metadata() or {})[META])
    return dict(meta.get("trouble", {}))


def first_reasons(ours: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, str]:
    """Return the sites in trouble of both; of a site that is in both the first reason."""
    return {**ours, **{site: why for site, why in theirs.items() if site not in ours}}


def written(path: Path, survey: "Survey") -> None:
    """Write a survey to a state file, a place at a time."""
    with StateWriter(path) as out:
        for place in survey.held:
            out.add(type(survey)({place: survey.held[place]}))
        out.note(survey.trouble, survey.seen)


def joined(left: Path, right: Path, out: Path) -> None:
    """Write the merge of two state files, a place at a time."""
    first, second = StateReader(left), StateReader(right)
    trouble = first_reasons(first.trouble, second.trouble)
    with StateWriter(out) as merged:
        for place in dict.fromkeys((*first.places, *second.places)):
            if place[0] not in trouble:
                survey = first.survey([place])
                survey.merge(second.survey([place]))
                merged.add(survey)
        seen = {
            name: first.seen.get(name, 0) + second.seen.get(name, 0)
            for name in dict.fromkeys((*first.seen, *second.seen))
        }
        merged.note(trouble, seen)


def laid_over(first: Path, second: Path, out: Path) -> None:
    """Write a first pass with what a second one found beside it."""
    base, more = StateReader(first), StateReader(second)
    trouble = first_reasons(base.trouble, more.trouble)
    with StateWriter(out) as whole:
        for place in dict.fromkeys((*base.places, *more.places)):
            if place[0] not in trouble:
                survey = base.survey([place])
                found = more.survey([place]).held.get(place, {})
                survey.held.setdefault(place, {}).update(found)
                whole.add(survey)
        whole.note(trouble, base.seen)

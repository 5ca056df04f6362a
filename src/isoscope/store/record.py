"""The typed parts of an origin: sources, settings, the model and the task of a sweep."""

from collections.abc import Mapping
from typing import ClassVar, Self

import msgspec

from isoscope.store.schema import plain_values


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A record of run.json; keys that this version does not know are kept in `rest`."""

    rest: dict[str, object] = {}
    if_known: ClassVar[frozenset[str]] = frozenset()  # fields that are written if they are set

    @classmethod
    def from_dict(cls, record: Mapping[str, object]) -> Self:
        """Return the record as a struct; msgspec.ValidationError where a field is wrong."""
        plain: dict[str, object] = plain_values(dict(record))
        names = set(cls.__struct_fields__) - {"rest"}
        known = {key: value for key, value in plain.items() if key in names}
        rest = {key: value for key, value in plain.items() if key not in names}
        return msgspec.convert({**known, "rest": rest}, cls)

    def to_dict(self) -> dict[str, object]:
        """Return plain values, as they are written."""
        found: dict[str, object] = {}
        for name in self.__struct_fields__:
            value = getattr(self, name)
            absent = name in self.if_known and (value is None or value == ())
            if name != "rest" and not absent:
                found[name] = plain_values(value)
        return {**found, **self.rest}


class Source(Part, frozen=True, kw_only=True):
    """One file or stream of rows that went into a run; what surveys add may be missing."""

    name: str
    fingerprint: str
    rows: int
    dtype: str
    width: int
    file: str = ""
    kind: str | None = None  # of documents: text, image, audio, ...
    documents: int | None = None  # that were read, ...
    of: int | None = None  # ... of how many
    truncated: int | None = None
    warnings: tuple[str, ...] = ()
    units: str | None = None  # address of the units of work
    if_known = frozenset({"kind", "documents", "of", "truncated", "warnings", "units"})


class Settings(Part, frozen=True, kw_only=True):
    """What the measures were computed with; what only one command knows is in `rest`."""

    measures: tuple[str, ...] = ()
    zeta: float | None = None
    as_published: bool | None = None
    documents: bool | None = None  # whether rows came in documents
    if_known = frozenset({"measures", "zeta", "as_published", "documents"})


class Identity(Part, frozen=True, kw_only=True):
    """Fingerprints of a model: everything of it that could change a reading."""

    model: str = ""  # its name
    sha: str = ""
    revision: str | None = None
    config: str | None = None
    tokenizer: str | None = None
    dtype: str = ""
    architecture: str = ""
    parameters: int | None = None
    untrained: bool = False
    seed: int | None = None  # of random weights
    versions: dict[str, str] = {}


class Task(Part, frozen=True, kw_only=True):
    """What the models of a sweep were trained for."""

    name: str
    metric: str
    baseline: float
    kind: str = ""
    classes: tuple[object, ...] = ()
    remarks: tuple[str, ...] = ()
    diverged: tuple[str, ...] = ()  # cells; older runs have no such list


class Penalty(msgspec.Struct, frozen=True):
    """The penalty of a sweep: its name is all that is shown of it."""

    name: str


class SweepSettings(msgspec.Struct, frozen=True):
    """The settings that only a sweep has, as far as its table shows them."""

    penalty: Penalty
    seeds: tuple[int, ...]
    steps: int

"""Where a run comes from, and which runs may be added together."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Self, TypeVar, cast

import msgspec
import numpy as np

from isoscope.errors import MergeError
from isoscope.store.schema import SCHEMA, plain_values


class OriginPart(msgspec.Struct, frozen=True, kw_only=True):
    """A record of run.json; keys that this version does not know are kept in `rest`."""

    rest: dict[str, object] = {}
    if_known: ClassVar[frozenset[str]] = frozenset()  # fields that are written if they are set

    @classmethod
    def from_dict(cls, record: Mapping[str, object]) -> Self:
        """Return the record as a struct; msgspec.ValidationError where a field is wrong."""
        plain = msgspec.convert(plain_values(dict(record)), dict[str, object])
        names = set(cls.__struct_fields__) - {"rest"}
        rest = {key: plain.pop(key) for key in list(plain) if key not in names}
        return msgspec.convert({**plain, "rest": rest}, cls)

    def to_dict(self) -> dict[str, object]:
        """Return plain values, as they are written."""
        values: dict[str, object] = msgspec.structs.asdict(self)
        del values["rest"]
        found = {
            name: plain_values(value)
            for name, value in values.items()
            if name not in self.if_known or value not in (None, (), {})
        }
        return {**found, **self.rest}


class SourceRecord(OriginPart, frozen=True, kw_only=True):
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
    loss: dict[str, bool | float | str | None] | None = None  # of a language model
    units: str | None = None  # address of the units of work
    if_known = frozenset({"kind", "documents", "of", "truncated", "warnings", "loss", "units"})


class Settings(OriginPart, frozen=True, kw_only=True):
    """What the measures were computed with; what only one command knows is in `rest`."""

    measures: tuple[str, ...] = ()
    zeta: float | None = None
    as_published: bool | None = None
    documents: bool | None = None  # whether rows came in documents
    controls: int | None = None  # random subspaces that gradients are compared with
    # What rows or documents without ids are known by: content (and order), or order alone;
    # None: by ids, or in older runs by the name of their file and their order in it.
    known_by: str | None = None
    if_known = frozenset(
        {"measures", "zeta", "as_published", "documents", "controls", "known_by"}
    )


class Identity(OriginPart, frozen=True, kw_only=True):
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
    layers: dict[str, int] = {}  # how many layers each family of sites has; of surveys
    if_known = frozenset({"layers"})


class TaskRecord(OriginPart, frozen=True, kw_only=True):
    """What the models of a sweep were trained for."""

    name: str
    metric: str
    baseline: float
    kind: str = ""
    classes: tuple[object, ...] = ()
    remarks: tuple[str, ...] = ()
    diverged: tuple[str, ...] = ()  # cells; older runs have no such list


class PenaltyRecord(msgspec.Struct, frozen=True):
    """The penalty of a sweep: its name is all that is shown of it."""

    name: str


class SweepSettings(msgspec.Struct, frozen=True):
    """The settings that only a sweep has, as far as its table shows them."""

    penalty: PenaltyRecord
    seeds: tuple[int, ...]
    steps: int


class _Shape(msgspec.Struct, frozen=True):
    """What an origin in run.json must have before its parts are looked at."""

    kind: str
    sources: list[dict[str, object]]
    settings: dict[str, object]
    seed: int
    schema: int = SCHEMA
    model: dict[str, object] | None = None


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run comes from; keys that this version does not know are kept in `rest`."""

    kind: str  # vectors, survey or sweep
    sources: tuple[SourceRecord, ...]
    settings: Settings
    seed: int
    schema: int = SCHEMA
    model: Identity | None = None
    task: TaskRecord | None = None
    rest: dict[str, object] = {}

    @classmethod
    def from_dict(cls, record: Mapping[str, object]) -> Self:
        """Return the origin that stands in run.json; ValidationError where a field is wrong.

        A task that is not whole stays in `rest`: the readings of its run can still be read.
        """
        shape = msgspec.convert(dict(record), _Shape)
        known = {*_Shape.__struct_fields__, "task"}
        rest = {key: value for key, value in record.items() if key not in known}
        task: TaskRecord | None = None
        if record.get("task") is not None:
            try:
                task = TaskRecord.from_dict(msgspec.convert(record["task"], dict[str, object]))
            except msgspec.ValidationError:
                rest = {**rest, "task": record["task"]}
        return cls(
            schema=shape.schema,
            kind=shape.kind,
            sources=tuple(SourceRecord.from_dict(source) for source in shape.sources),
            settings=Settings.from_dict(shape.settings),
            seed=shape.seed,
            model=None if shape.model is None else Identity.from_dict(shape.model),
            task=task,
            rest=rest,
        )

    def to_dict(self) -> dict[str, object]:
        """Return plain values, as they stand in run.json."""
        found: dict[str, object] = {
            "schema": self.schema,
            "kind": self.kind,
            "sources": [source.to_dict() for source in self.sources],
            "settings": self.settings.to_dict(),
            "seed": self.seed,
        }
        parts = {"model": self.model, "task": self.task}
        found |= {name: part.to_dict() for name, part in parts.items() if part is not None}
        return {**found, **self.rest}

    @property
    def remarks(self) -> tuple[str, ...]:
        """What readers should know of the sources, each text once."""
        return tuple(dict.fromkeys(text for each in self.sources for text in each.warnings))

    def sweep(self) -> tuple[TaskRecord, SweepSettings]:
        """Return what a sweep was about; ValidationError where that is missing."""
        if self.task is None:
            raise msgspec.ValidationError("it has no whole task")
        return self.task, msgspec.convert(self.settings.rest, SweepSettings)


def new_origin(
    *,
    sources: Sequence[SourceRecord | Mapping[str, object]],
    settings: Settings | Mapping[str, object],
    seed: int,
    kind: str = "vectors",
    model: Identity | Mapping[str, object] | None = None,
    task: TaskRecord | Mapping[str, object] | None = None,
) -> Origin:
    """Return the origin of a run that has just been measured."""
    return Origin(
        kind=kind,
        sources=tuple(_part(SourceRecord, source) for source in sources),
        settings=_part(Settings, settings),
        seed=msgspec.convert(seed, int),
        model=None if model is None else _part(Identity, model),
        task=None if task is None else _part(TaskRecord, task),
    )


P = TypeVar("P", bound=OriginPart)


def _part(kind: type[P], part: P | Mapping[str, object]) -> P:
    return part if isinstance(part, kind) else kind.from_dict(cast(Mapping[str, object], part))


def versions() -> dict[str, str]:
    """The versions that numbers may depend on."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    try:
        own = version("isoscope")
    except PackageNotFoundError:  # run from a checkout that was never installed
        own = "unknown"
    return {"isoscope": own, "numpy": np.__version__, "python": platform.python_version()}


def mergeable(origins: Sequence[Origin]) -> Origin:
    """Return the origin of the merged run; MergeError where the runs do not add up."""
    first, *others = origins
    for other in others:
        if first.schema != other.schema:
            raise MergeError(
                f"cannot merge a run of schema {first.schema} with one of {other.schema}",
                hint="measure the older one again with this version",
                slug="merge-schema",
            )
        ours, theirs = _shared_values(first), _shared_values(other)
        for what in dict.fromkeys((*ours, *theirs)):
            if what not in ours or what not in theirs or ours[what] != theirs[what]:
                part, name = what
                owned = part in ("model", "task") and part != name
                called = f"{name} of the {part}" if owned else name
                raise MergeError(
                    f"cannot merge runs of different {called}: "
                    f"{_short(ours.get(what))} and {_short(theirs.get(what))}",
                    hint="only runs measured with the same settings, on rows of one width and "
                    "type, add up",
                    slug="merge-origin",
                )
        _no_source_twice(first, other)
        first = msgspec.structs.replace(first, sources=(*first.sources, *other.sources))
    return first


def _shared_values(origin: Origin) -> dict[tuple[str, str], object]:
    """Return what must be the same in both, each by its part of the origin and its name."""
    model = {} if origin.model is None else origin.model.to_dict()
    model.pop("layers", None)  # follows from the config; runs of earlier versions have none
    parts: dict[str, Mapping[str, object]] = {
        "": {
            "kind": origin.kind,
            "width": sorted({source.width for source in origin.sources}),
            "dtype": sorted({source.dtype for source in origin.sources}),
            "seed": origin.seed,
        },
        "settings": origin.settings.to_dict(),
        "model": model,
        "task": {} if origin.task is None else origin.task.to_dict(),
        "rest": origin.rest,
    }
    return {(part, name): value for part, all in parts.items() for name, value in all.items()}


def _short(value: object) -> str:
    text = repr(value)
    if isinstance(value, list) and len(cast(list[object], value)) == 1:
        text = text[1:-1]
    return text if len(text) <= 60 else text[:57] + "..."


def _no_source_twice(first: Origin, other: Origin) -> None:
    """Refuse runs of the same rows, and runs whose rows would pass for one another."""
    prints = {source.fingerprint: source.name for source in first.sources}
    names = {source.name for source in first.sources}
    ids = first.kind == "vectors" and first.settings.documents
    by_name = first.settings.known_by is None and not ids
    if first.settings.known_by == "order":
        raise MergeError(
            "cannot merge runs whose rows are known by their order alone",
            hint="measure both again without --by-order",
            slug="merge-by-order",
        )
    for source in other.sources:
        if source.fingerprint in prints:
            raise MergeError(
                f"cannot merge {prints[source.fingerprint]!r} with {source.name!r}: "
                "they hold the same rows",
                hint="merge only one of the two runs",
                slug="merge-same-source",
            )
        if source.name in names and by_name:
            raise MergeError(
                f"cannot merge two sources that are both called {source.name!r}",
                hint="rows or documents may be known by it: measure one again with another "
                "--name, or survey a file of another name",
                slug="merge-same-name",
            )

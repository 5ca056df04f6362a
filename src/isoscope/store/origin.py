"""Where a run comes from, and which runs may be added together."""

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Self, TypeVar, cast

import msgspec
import numpy as np

from isoscope.errors import MergeError
from isoscope.store.record import Identity, Part, Settings, Source, SweepSettings, Task
from isoscope.store.schema import SCHEMA

P = TypeVar("P", bound=Part)


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
    sources: tuple[Source, ...]
    settings: Settings
    seed: int
    schema: int = SCHEMA
    model: Identity | None = None
    task: Task | None = None
    rest: dict[str, object] = {}

    @classmethod
    def from_dict(cls, record: Mapping[str, object]) -> Self:
        """Return the origin that stands in run.json; ValidationError where a field is wrong.

        A task that is not whole stays in `rest`: the readings of its run can still be read.
        """
        shape = msgspec.convert(dict(record), _Shape)
        known = {*_Shape.__struct_fields__, "task"}
        rest = {key: value for key, value in record.items() if key not in known}
        task: Task | None = None
        if record.get("task") is not None:
            try:
                task = Task.from_dict(msgspec.convert(record["task"], dict[str, object]))
            except msgspec.ValidationError:
                rest = {**rest, "task": record["task"]}
        return cls(
            schema=shape.schema,
            kind=shape.kind,
            sources=tuple(Source.from_dict(source) for source in shape.sources),
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

    def sweep(self) -> tuple[Task, SweepSettings]:
        """Return what a sweep was about; ValidationError where that is missing."""
        if self.task is None:
            raise msgspec.ValidationError("it has no whole task")
        return self.task, msgspec.convert(self.settings.rest, SweepSettings)


def new_origin(
    *,
    sources: Sequence[Source | Mapping[str, object]],
    settings: Settings | Mapping[str, object],
    seed: int,
    kind: str = "vectors",
    model: Identity | Mapping[str, object] | None = None,
    task: Task | Mapping[str, object] | None = None,
) -> Origin:
    """Return the origin of a run that has just been measured."""
    return Origin(
        kind=kind,
        sources=tuple(_part(Source, source) for source in sources),
        settings=_part(Settings, settings),
        seed=msgspec.convert(seed, int),
        model=None if model is None else _part(Identity, model),
        task=None if task is None else _part(Task, task),
    )


def _part(kind: type[P], given: P | Mapping[str, object]) -> P:
    return (
        given if isinstance(given, kind) else kind.from_dict(cast(Mapping[str, object], given))
    )


def versions() -> dict[str, str]:
    """The versions that numbers may depend on."""
    try:
        own = version("isoscope")
    except PackageNotFoundError:  # run from a checkout that was never installed
        own = "unknown"
    return {"isoscope": own, "numpy": np.__version__, "python": platform.python_version()}


def mergeable(origins: Sequence[Origin]) -> Origin:
    """Return the origin of the merged run; MergeError where the runs do not add up."""
    first, *others = origins
    for other in others:
        _same_schema(first, other)
        ours, theirs = _shared(first), _shared(other)
        for what in dict.fromkeys((*ours, *theirs)):
            if what not in ours or what not in theirs or ours[what] != theirs[what]:
                raise _different(what, ours.get(what), theirs.get(what))
        _no_source_twice(first.sources, other.sources)
        first = msgspec.structs.replace(first, sources=(*first.sources, *other.sources))
    return first


def _same_schema(one: Origin, other: Origin) -> None:
    if one.schema != other.schema:
        raise MergeError(
            f"cannot merge a run of schema {one.schema} with one of {other.schema}",
            hint="measure the older one again with this version",
            slug="merge-schema",
        )


def _shared(origin: Origin) -> dict[tuple[str, str], object]:
    """Return what must be the same in both, each by its part of the origin and its name."""
    parts: dict[str, Mapping[str, object]] = {
        "": {
            "kind": origin.kind,
            "width": sorted({source.width for source in origin.sources}),
            "dtype": sorted({source.dtype for source in origin.sources}),
            "seed": origin.seed,
        },
        "settings": origin.settings.to_dict(),
        "model": {} if origin.model is None else origin.model.to_dict(),
        "task": {} if origin.task is None else origin.task.to_dict(),
        "rest": origin.rest,
    }
    return {(part, name): value for part, all in parts.items() for name, value in all.items()}


def _different(what: tuple[str, str], ours: object, theirs: object) -> MergeError:
    part, name = what
    called = f"{name} of the {part}" if part in ("model", "task") and part != name else name
    return MergeError(
        f"cannot merge runs of different {called}: {_short(ours)} and {_short(theirs)}",
        hint="only runs measured with the same settings, on rows of one width and type, add up",
        slug="merge-origin",
    )


def _short(value: object) -> str:
    one = isinstance(value, list) and len(cast(list[object], value)) == 1
    text = repr(value)[1:-1] if one else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _no_source_twice(ours: Sequence[Source], theirs: Sequence[Source]) -> None:
    prints = {source.fingerprint: source.name for source in ours}
    names = {source.name for source in ours}
    for source in theirs:
        if source.fingerprint in prints:
            raise MergeError(
                f"cannot merge {prints[source.fingerprint]!r} with {source.name!r}: "
                "they hold the same rows",
                hint="leave one of the two runs out",
                slug="merge-same-source",
            )
        if source.name in names:
            raise MergeError(
                f"cannot merge two sources that are both called {source.name!r}",
                hint="rows are told apart by it: measure one again with --name OTHER, or "
                "survey a file of another name",
                slug="merge-same-name",
            )

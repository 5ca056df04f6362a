"""Where a run comes from, and which runs may be added together."""

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import msgspec
import numpy as np

from isoscope.errors import MergeError
from isoscope.store.schema import SCHEMA, Origin, plain_values

Record = dict[str, Any]


def new_origin(
    *,
    sources: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any],
    seed: int,
    kind: str = "vectors",
) -> Record:
    """The origin of a run that has just been measured."""
    return checked(
        {
            "schema": SCHEMA,
            "kind": kind,
            "sources": [dict(source) for source in sources],
            "settings": dict(settings),
            "seed": seed,
        }
    )


def checked(origin: Mapping[str, Any]) -> Record:
    """The origin as plain values; raises msgspec.ValidationError where a field is wrong."""
    record = plain_values({"schema": SCHEMA, **origin})
    msgspec.convert(record, Origin)
    return record


def versions() -> dict[str, str]:
    """The versions that numbers may depend on."""
    try:
        own = version("isoscope")
    except PackageNotFoundError:  # run from a checkout that was never installed
        own = "unknown"
    return {"isoscope": own, "numpy": np.__version__, "python": platform.python_version()}


def mergeable(origins: Sequence[Mapping[str, Any]]) -> Record:
    """The origin of the merged run, or a MergeError that says why there can be none."""
    first, *rest = [checked(origin) for origin in origins]
    for other in rest:
        _same_schema(first, other)
        for what, ours in _shared(first).items():
            theirs = _shared(other)[what]
            if ours != theirs:
                raise _different(what, ours, theirs)
        _no_source_twice(first["sources"], other["sources"])
        first = {**first, "sources": [*first["sources"], *other["sources"]]}
    return first


def _same_schema(one: Record, other: Record) -> None:
    if one["schema"] != other["schema"]:
        raise MergeError(
            f"cannot merge a run of schema {one['schema']} with one of {other['schema']}",
            hint="measure the older one again with this version",
            slug="merge-schema",
        )


def _shared(origin: Record) -> Record:
    """What must be the same in both, each under the name a message uses."""
    own = ("schema", "kind", "sources", "settings", "seed")
    sources = origin["sources"]
    return {
        "kind": origin["kind"],
        "width": sorted({source["width"] for source in sources}),
        "dtype": sorted({source["dtype"] for source in sources}),
        "seed": origin["seed"],
        "settings": origin["settings"],
        "origin": {key: value for key, value in origin.items() if key not in own},
    }


def _different(what: str, ours: Any, theirs: Any) -> MergeError:
    if isinstance(ours, dict):
        # Name the one setting that differs: the whole dictionaries would hide it.
        keys = [*ours, *(key for key in theirs if key not in ours)]
        what = next(key for key in keys if ours.get(key) != theirs.get(key))
        ours, theirs = ours.get(what), theirs.get(what)
    return MergeError(
        f"cannot merge runs of different {what}: {_short(ours)} and {_short(theirs)}",
        hint="only runs measured with the same settings, on rows of one width and type, add up",
        slug="merge-origin",
    )


def _short(value: Any) -> str:
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _no_source_twice(ours: list[Record], theirs: list[Record]) -> None:
    prints = {source["fingerprint"]: source["name"] for source in ours}
    names = {source["name"] for source in ours}
    for source in theirs:
        if source["fingerprint"] in prints:
            raise MergeError(
                f"cannot merge {prints[source['fingerprint']]!r} with {source['name']!r}: "
                "they hold the same rows",
                hint="leave one of the two runs out",
                slug="merge-same-source",
            )
        if source["name"] in names:
            raise MergeError(
                f"cannot merge two sources that are both called {source['name']!r}",
                hint="rows are told apart by it: measure one again with --name OTHER, or "
                "survey a file of another name",
                slug="merge-same-name",
            )

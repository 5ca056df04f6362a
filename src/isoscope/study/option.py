"""Options: the one place of a name, a type, a default, bounds and a help line.

A spec is a frozen struct; its fields are options, or parts that hold options. What stands
in the annotation of a field is all that flags, keywords, `--config` and help know of it.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial, reduce
from inspect import get_annotations
from math import isfinite
from os import PathLike, fspath
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Literal,
    Protocol,
    TypeGuard,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec.structs import FieldInfo

from isoscope.dataclass import dataclass
from isoscope.errors import ConfigError
from isoscope.registry import unknown

KINDS: dict[object, str] = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
}


class Hint(Protocol):
    """A type as an annotation writes it: a class, a union, a literal, a generic alias."""

    def __or__(self, other: object, /) -> "Hint":
        """Return the union with another type."""
        ...


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A group of options that several specs share."""


P = TypeVar("P", bound=Part)


@dataclass(frozen=True, slots=True)
class About:
    """What the annotation of a field says of an option beside its type."""

    help: str
    metavar: str = ""
    flag: str = ""  # the flag where it is not the name, and a short one: "-m/--measure"
    least: float | None = None
    most: float | None = None
    default: str = ""  # how help describes a default of None
    argument: bool = False  # named by its position on the command line, and in Python
    positional: bool = False  # named by its position in Python only
    commas: bool = False  # several values are one word on the command line
    numbers: bool = False  # whole numbers are among its names
    path: bool = False  # names content, which ids hash in place of the name
    local: bool = False  # may differ between runs that are merged
    in_id: bool = True  # False where no number depends on it: a run is resumed with another
    live: bool = False  # Python may pass an object in place of a name
    noun: str = ""  # what errors call one of its words, where it is not the flag


about = About  # as annotations of fields write it
MOST_THREADS = 1024  # OpenMP ends the process where it cannot start as many as it is told


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a spec: a leaf of its tree of parts."""

    name: str
    path: tuple[str, ...]  # the fields that lead to it
    type: Hint  # without the annotation
    default: object  # msgspec.NODEFAULT where it is required
    about: About

    @property
    def flag(self) -> str:
        """The long name on the command line and in files, without hyphens in front."""
        names = [name for name in self.about.flag.split("/") if name.startswith("--")]
        return names[0].removeprefix("--") if names else self.name.replace("_", "-")

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is msgspec.NODEFAULT

    @property
    def plain(self) -> Hint:
        """The type of one value: without None, and of a sequence its entries."""
        kinds = [kind for kind in _members(self.type) if kind not in (NoneType,)]
        kind = kinds[0] if len(kinds) == 1 else self.type
        return _arguments(kind)[0] if get_origin(kind) is tuple else kind

    @property
    def many(self) -> bool:
        """Whether it takes several values."""
        return any(get_origin(kind) is tuple for kind in _members(self.type))

    @property
    def words(self) -> tuple[str, ...]:
        """The words it may be; none where it is free."""
        words: tuple[str, ...] = get_args(self.plain)
        return words if get_origin(self.plain) is Literal else ()

    def check(self, value: object) -> object:
        """Return the value as the spec holds it, or raise the error that names it."""
        value = self._shape(value)
        for each in value if is_list(value) else [value]:
            if self.words and isinstance(each, str) and each not in self.words:
                raise unknown(self.about.noun or self.flag, each, self.words)
        try:
            found = cast(object, msgspec.convert(value, self.type, strict=True))
        except msgspec.ValidationError:
            raise self._wrong(value) from None
        if isinstance(found, float) and not isfinite(found):
            raise self._wrong(value)
        self._check_bounds(found)
        return found

    def _shape(self, value: object) -> object:
        """Return sequences as lists, one name as a list of it, whole numbers as floats."""
        if not self.many or value is None:
            return self._one(value)
        if isinstance(value, str):
            whole = self.about.path and Path(value).expanduser().exists()  # commas and all
            parts = value.split(",") if self.about.commas and not whole else [value]
            value = [part.strip() for part in parts if part.strip()]
        elif isinstance(value, int | float) or is_path(value):
            value = [value]
        if not has_entries(value):
            raise self._wrong(value)
        return [self._one(each) for each in value]

    def _one(self, value: object) -> object:
        if self.plain is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if self.about.path and is_path(value):
            return fspath(value)
        if self.about.numbers and type(value) is int:
            return str(value)
        if self.plain is float and isinstance(value, str) and self.about.commas:
            with suppress(ValueError):
                return float(value)
        return value

    def _check_bounds(self, value: object) -> None:
        least, most = self.about.least, self.about.most
        for each in value if is_tuple(value) else (value,):
            if isinstance(each, bool) or not isinstance(each, int | float):
                continue
            if (least is None or each >= least) and (most is None or each <= most):
                continue
            if self.name == "seed":
                raise self._wrong(each)
            whole = self.plain is int and most is None
            bounds = [f"at least {least:g}"] if least is not None else []
            bounds += [f"at most {most:g}"] if most is not None else []
            raise ConfigError(
                f"expected {' and '.join(bounds)} as {self.flag}, got {each!r}",
                hint=f"give a {'whole ' * whole}number in that range to --{self.flag}",
                slug="number-too-small" if whole else "number-range",
            )

    def _wrong(self, value: object) -> ConfigError:
        if self.name == "seed":
            return ConfigError(
                f"expected a whole number from 0 to 2^63 - 1 as seed, got {value!r}",
                hint="any whole number in that range will do; 0 is the default",
                slug="seed",
            )
        least = self.about.least
        if self.plain in (int, float) and least is not None and not is_list(value):
            whole = self.plain is int
            return ConfigError(
                f"expected at least {least:g} as {self.flag}, got {value!r}",
                hint=f"give a {'whole ' * whole}number to --{self.flag}",
                slug="number-too-small" if whole else "number-range",
            )
        if self.many and self.about.commas and self.plain in (int, float) and is_list(value):
            got = ",".join(map(str, value))
            return ConfigError(
                f"expected numbers as {self.flag}, got {got!r}",
                hint=f"give numbers with commas between them: --{self.flag} 1,2.5",
                slug="option-kind",
            )
        return ConfigError(
            f"expected {KINDS.get(self.plain, 'another value')} as {self.flag}, got {value!r}",
            hint=f"docs/options.md says what --{self.flag} takes",
            slug="option-kind",
        )


def options_of(kind: type[Part], default: Part | None = None) -> Iterator[Option]:
    """Yield the options of a part or a spec, parts within it included.

    Those that a class has of its own come before those that it shares with others.
    """
    hints: dict[str, Hint] = get_type_hints(kind, include_extras=True)
    for each in sorted(msgspec.structs.fields(kind), key=partial(_distance, kind)):
        hint = hints[each.name]
        value = _default(each, default)
        part = _part(hint)
        if part is not None:
            known = value if isinstance(value, Part) else None
            for inner in options_of(part, known):
                yield replace(inner, path=(each.name, *inner.path))
            continue
        notes: tuple[object, ...] = get_args(hint)[1:]
        found = [note for note in notes if isinstance(note, About)]
        if get_origin(hint) is not Annotated or not found:
            raise TypeError(f"{kind.__name__}.{each.name} is not described by about()")
        yield Option(each.name, (each.name,), _arguments(hint)[0], value, found[0])


def _distance(kind: type[Part], field: FieldInfo) -> int:
    """Return how far up among the classes of a part a field is written first.

    A part that a subclass replaces keeps its place: MODEL stays before CORPUS.
    """
    return max(
        number
        for number, each in enumerate(kind.__mro__)
        if field.name in get_annotations(each)
    )


@cache
def named_options(kind: type[Part]) -> dict[str, Option]:
    """Return the options by name; the same name twice is a bug of the spec."""
    found: dict[str, Option] = {}
    for option in options_of(kind):
        if option.name in found:
            raise TypeError(f"{kind.__name__} has two options called {option.name!r}")
        found[option.name] = option
    return found


def build(kind: type[P], values: Mapping[str, object], default: Part | None = None) -> P:
    """Return a part with these values, by the names of its leaves, and defaults elsewhere."""
    hints: dict[str, Hint] = get_type_hints(kind, include_extras=True)
    made: dict[str, object] = {}
    for each in msgspec.structs.fields(kind):
        hint = hints[each.name]
        value = _default(each, default)
        part = _part(hint)
        if part is not None:
            made[each.name] = build(part, values, value if isinstance(value, Part) else None)
        elif each.name in values:
            made[each.name] = values[each.name]
        elif default is not None:
            made[each.name] = value
    return kind(**made)


def leaf(part: Part, path: tuple[str, ...]) -> object:
    """Return the value at the end of a path of fields."""
    return cast(object, reduce(getattr, path, part))


def has_entries(value: object) -> TypeGuard[Iterable[object]]:
    """Whether a value is a sequence or a stream, of whatever; a mapping is none."""
    return isinstance(value, Iterable) and not isinstance(value, Mapping)


def is_path(value: object) -> TypeGuard[PathLike[str]]:
    """Whether a value is a path object."""
    return isinstance(value, PathLike)


def is_list(value: object) -> TypeGuard[list[object]]:
    """Whether a value is a list, of whatever."""
    return isinstance(value, list)


def is_tuple(value: object) -> TypeGuard[tuple[object, ...]]:
    """Whether a value is a tuple, of whatever."""
    return isinstance(value, tuple)


def _default(field: FieldInfo, part: Part | None) -> object:
    """Return the default of a field: as a part has it, or as the class."""
    return cast(object, field.default) if part is None else leaf(part, (field.name,))


def _arguments(kind: Hint) -> tuple[Hint, ...]:
    """Return what stands in the brackets of a type."""
    found: tuple[Hint, ...] = get_args(kind)
    return found


def _members(kind: Hint) -> tuple[Hint, ...]:
    return _arguments(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _part(hint: object) -> type[Part] | None:
    """Return the part that a field holds; None where the field is an option."""
    return hint if isinstance(hint, type) and issubclass(hint, Part) else None

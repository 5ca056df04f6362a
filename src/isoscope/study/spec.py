"""The spec, which determines the numbers of a run, and the execution, which does not."""

from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import blake2b
from typing import Annotated, ClassVar, Self

import msgspec

from isoscope.errors import ConfigError, ResumeError, UnknownNameError
from isoscope.registry import unknown
from isoscope.study.option import Option, Part, about, build, is_tuple, leaf, named_options

ID_BYTES = 16


class Spec(Part, frozen=True, kw_only=True):
    """One kind of work; subclasses add options, and say how a worker is opened."""

    command: ClassVar[str] = ""  # its name on the command line, in files and in Python

    @classmethod
    def options(cls) -> dict[str, Option]:
        """Return the options by name."""
        return _options(cls)

    @classmethod
    def of(cls, **values: object) -> Self:
        """Return a checked spec; what is not given has its default.

        Raises the error that names the option, with the nearest name that there is.
        """
        known = cls.options()
        refuse_unknown(values, known)
        for name, option in known.items():
            if option.required and values.get(name) is None and not option.about.live:
                raise ConfigError(
                    f"expected {name} of a {cls.command}, got none",
                    hint=f"{option.about.help}",
                    slug="option-missing",
                )
        checked = {name: known[name].check(value) for name, value in values.items()}
        for name, option in known.items():
            if option.required:
                checked.setdefault(name, None)  # an object takes its place
        return build(cls, checked)

    @classmethod
    def from_config(cls, config: Mapping[str, object]) -> Self:
        """Return the spec that flags and values of a file describe; see `to_config`."""
        flags = {option.flag: name for name, option in cls.options().items()}
        values: dict[str, object] = {}
        for key, value in config.items():
            if key not in flags:
                error = unknown("setting", key, sorted(flags))
                raise ConfigError(error.problem, hint=error.hint, slug="config-unknown")
            values[flags[key]] = value
        return cls.of(**values)

    def to_config(self) -> dict[str, object]:
        """Return the flags that do the same again, as plain values of YAML."""
        flags: dict[str, object] = {}
        for option in self.options().values():
            value = leaf(self, option.path)
            usual = value is option.default or option.required
            if usual and value in (None, False):
                continue
            if is_tuple(value):
                value = ",".join(map(_word, value)) if option.about.commas else list(value)
            flags[option.flag] = value
        return flags

    def value(self, name: str) -> object:
        """Return the value of an option, wherever it stands."""
        return leaf(self, self.options()[name].path)

    def settings(self) -> dict[str, object]:
        """Return the options that runs must share to be merged, as plain values."""
        return {
            name: msgspec.to_builtins(leaf(self, option.path))
            for name, option in self.options().items()
            if not option.about.local and not option.about.path and name != "seed"
        }

    def resolve(self, content: Mapping[str, str]) -> dict[str, object]:
        """Return what the id hashes: options, and fingerprints in place of paths."""
        values = {
            name: msgspec.to_builtins(leaf(self, option.path))
            for name, option in self.options().items()
            if not option.about.path
        }
        found = {"command": self.command, "options": values, "content": dict(content)}
        return msgspec.json.decode(  # as a file gives it back
            msgspec.json.encode(found), type=dict[str, object]
        )

    def address(self, content: Mapping[str, str]) -> str:
        """Return a name that follows from the options and from the content they name."""
        return digest(self.resolve(content))


class EngineOptions(Part, frozen=True, kw_only=True):
    """Engine and workers: all that commands without a run folder need."""

    engine: Annotated[
        str, about("Where units run: here, or pool (several processes).", "ENGINE")
    ] = "here"
    workers: Annotated[int, about("Number of processes.", "N", least=1)] = 1


class Execution(EngineOptions, frozen=True, kw_only=True):
    """Engine, workers, and the folder of the run."""

    output: Annotated[
        str | None,
        about(
            "Save a run folder; an unfinished one is resumed.",
            "RUN",
            flag="-o/--output",
            path=True,
        ),
    ] = None
    overwrite: Annotated[bool, about("Replace the run folder if it exists.")] = False


class UnknownOptionError(UnknownNameError, TypeError):
    """No option has this name; for Python an unexpected keyword."""


def refuse_unknown(names: Iterable[str], known: Mapping[str, Option]) -> None:
    """Raise where a name is not that of an option, with the nearest that is."""
    for name in names:
        if name not in known:
            error = unknown("option", name, known)
            raise UnknownOptionError(error.problem, hint=error.hint, slug=error.slug)


def digest(value: object) -> str:
    """Return the content address of plain values: the same for the same content."""
    text = msgspec.json.encode(value, order="sorted")
    return blake2b(text, digest_size=ID_BYTES).hexdigest()


def refuse_other(folder: str, begun: Mapping[str, object], now: Mapping[str, object]) -> None:
    """Raise where a run was begun with another spec: which option differs, both values."""
    if begun.get("command") != now.get("command"):
        raise ResumeError(
            f"cannot resume {folder!r} with {now.get('command')}: "
            f"it was begun with {begun.get('command')}",
            hint="choose another folder, or begin again with --overwrite",
            slug="resume-other",
        )
    for what, verb in (("options", "with {key} {new}"), ("content", "with another {key}")):
        ours, theirs = _group(now, what), _group(begun, what)
        for key in [*ours, *(each for each in theirs if each not in ours)]:
            new, old = ours.get(key), theirs.get(key)
            if new != old:
                name = key.replace("_", "-") if what == "options" else key
                said = verb.format(key=f"--{name}", new=_short(new))
                said = said if what == "options" else verb.format(key=name)
                raise ResumeError(
                    f"cannot resume {folder!r} {said}: it was begun with {_short(old)}"
                    + ("" if what == "options" else f", this is {_short(new)}"),
                    hint="choose another folder, or begin again with --overwrite",
                    slug="resume-other",
                )


@cache
def _options(kind: type[Spec]) -> dict[str, Option]:
    return named_options(kind)


def _group(resolved: Mapping[str, object], what: str) -> dict[str, object]:
    """Return the options or the content of a resolved spec, as a file gives them."""
    return msgspec.convert(resolved.get(what, {}), dict[str, object])


def _word(value: object) -> str:
    return repr(value) if isinstance(value, float) else str(value)


def _short(value: object) -> str:
    text = repr(value) if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else f"{text[:57]}..."

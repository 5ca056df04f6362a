"""The spec, which determines the numbers of a run, and the execution, which does not."""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, ClassVar, Self

import msgspec

from isoscope.errors import ConfigError, ResumeError, UnknownNameError
from isoscope.registry import unknown
from isoscope.study.option import Option, Part, about, build, is_tuple, leaf, named_options

ID_BYTES = 16


class Spec(Part, frozen=True, kw_only=True):
    """One kind of work; subclasses add options, and say how a worker is opened."""

    command: ClassVar[str] = ""  # its name on the command line, in files and in Python
    revision: ClassVar[int] = 0  # raised when the same options come to other numbers

    @classmethod
    def options(cls) -> dict[str, Option]:
        """Return the options by name."""
        return named_options(cls)

    @classmethod
    def of(cls, **values: object) -> Self:
        """Return a checked spec; what is not set has its default.

        Raises the error that names the option, with the nearest name that there is.
        """
        known = cls.options()
        refuse_unknown(values, known)
        for name, option in known.items():
            if option.required and values.get(name) is None and not option.about.live:
                raise ConfigError(
                    f"expected {name} of a {cls.command}, got none",
                    hint=option.about.help,
                    slug="option-missing",
                )
        absent = {name: None for name, option in known.items() if option.required}
        checked = {name: known[name].check(value) for name, value in values.items()}
        return build(cls, absent | checked)  # where it is absent, an object takes its place

    def to_config(self, *, absolute: bool = False) -> dict[str, object]:
        """Return the flags that do the same again, as plain values of YAML.

        With `absolute`, names of files are written out, so that any folder will do.
        """
        flags: dict[str, object] = {}
        for option in self.options().values():
            about = option.about
            value = leaf(self, option.path)
            usual = value is option.default or option.required
            if usual and value in (None, False):
                continue
            if is_tuple(value):
                if absolute and about.path:
                    value = tuple(_absolute(each) for each in value)
                words = (repr(v) if isinstance(v, float) else str(v) for v in value)
                value = ",".join(words) if about.commas else list(value)
            named = absolute and (about.path or about.live)
            if named:
                value = _absolute(value)
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
            if not option.about.path and option.about.in_id
        }
        found: dict[str, object] = {
            "command": self.command,
            "options": values,
            "content": dict(content),
        }
        if self.revision:
            found["revision"] = self.revision
        return msgspec.json.decode(  # as a file gives it back
            msgspec.json.encode(found), type=dict[str, object]
        )


class EngineOptions(Part, frozen=True, kw_only=True):
    """Engine, workers and what happens to failing units: all but the run folder."""

    engine: Annotated[
        str,
        about(
            "Where units run: here, pool (several processes), ray (a cluster), or torchrun.",
            "ENGINE",
        ),
    ] = "here"
    workers: Annotated[int, about("Number of workers.", "N", least=1)] = 1
    address: Annotated[
        str | None,
        about("Ray cluster: auto, HOST:PORT or ray://HOST:PORT.", "A", default="a local one"),
    ] = None
    gpus_per_worker: Annotated[
        float, about("GPUs that Ray reserves for each worker.", "N", least=0)
    ] = 0.0
    memory_per_worker: Annotated[
        float, about("GB of memory that Ray reserves for each worker.", "GB", least=0)
    ] = 0.0
    retries: Annotated[
        int, about("Times that a unit is tried again after it has failed.", "N", least=0)
    ] = 2
    allow_missing: Annotated[
        bool, about("Finish without units that failed every time; readings have a warning.")
    ] = False


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
    content = msgspec.json.encode(value, order="sorted")
    return blake2b(content, digest_size=ID_BYTES).hexdigest()


def cannot_resume(folder: str, why: str) -> ResumeError:
    """Return the error for an unfinished run that is of other work."""
    return ResumeError(
        f"cannot resume {folder!r}{why}",
        hint="choose another folder, or begin again with --overwrite",
        slug="resume-other",
    )


def refuse_other(
    folder: str,
    begun: Mapping[str, object],
    now: Mapping[str, object],
    options: Mapping[str, Option],
) -> None:
    """Raise where a run was begun with another spec: which option differs, both values."""
    ours, theirs = now.get("command"), begun.get("command")
    if ours != theirs:
        raise cannot_resume(folder, f" with {ours}: it was begun with {theirs}")
    for what in ("options", "content"):
        ours, theirs = _group(now, what), _group(begun, what)
        for key in dict.fromkeys((*ours, *theirs)):
            if ours.get(key) == theirs.get(key):
                continue
            new, old = _short(ours.get(key)), _short(theirs.get(key))
            if what == "options":
                flag = options[key].flag if key in options else key.replace("_", "-")
                raise cannot_resume(folder, f" with --{flag} {new}: it was begun with {old}")
            raise cannot_resume(
                folder, f" with another {key}: it was begun with {old}, this is {new}"
            )


def _absolute(value: object) -> object:
    """Return the name of a file written out; anything else as it is."""
    there = isinstance(value, str) and Path(value).exists()
    return str(Path(value).resolve()) if isinstance(value, str) and there else value


def _group(resolved: Mapping[str, object], what: str) -> dict[str, object]:
    """Return the options or the content of a resolved spec, as a file gives them."""
    return msgspec.convert(resolved.get(what, {}), dict[str, object])


def _short(value: object) -> str:
    text = repr(value) if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else f"{text[:57]}..."

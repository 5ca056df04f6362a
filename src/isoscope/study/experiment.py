"""Experiments: one record per kind of work; command, help and documentation follow from it.

A record names its spec and its function by where they are, so that listing all experiments
imports none of them.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, cast

from isoscope.dataclass import dataclass
from isoscope.errors import ConfigError, UnknownNameError
from isoscope.registry import Registry

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from isoscope.display.page.section import Drawn, Section
    from isoscope.store.run import Run
    from isoscope.study.option import Part
    from isoscope.study.run import Runnable

GROUP = "isoscope.experiments"  # the entry points with which other packages bring theirs
EXECUTION = "isoscope.study.spec:Execution"  # engine and run folder
PLACE = "isoscope.study.spec:EngineOptions"  # engine alone, where no run folder is written
LAB = Path(__file__).parents[1] / "lab"
# Folders of lab/ with several experiments, whose commands have two words.
FAMILIES = {"nursery": ("train", "ablate")}
# The experiments of this package, and the light modules that register them: each folder of
# lab/ is an experiment of that name, or a family of them, registered by its `__init__.py`.
BUILT_IN = {
    "measure": "isoscope.study",
    "survey": "isoscope.study",
    **{
        f"{each.name.replace('_', '-')} {second}".strip(): f"isoscope.lab.{each.name}"
        for each in iter_modules([str(LAB)])
        if each.ispkg
        for second in FAMILIES.get(each.name, ("",))
    },
}


def python_name(name: str) -> str:
    """Return what the function of an experiment is called.

    >>> python_name("nursery train")
    'nursery_train'
    """
    return name.replace("-", "_").replace(" ", "_")


@dataclass(frozen=True)
class Experiment:
    """One kind of work: what it is called, and where its parts are.

    Whatever shows an experiment (command, Python function, `--config`, help, the list of
    options, the section of a report) is derived from this record.
    """

    name: str
    help: str  # the first line says it all, for lists
    spec_at: "type[Runnable[object]] | str"  # a class, or "module:Name"
    where_at: "type[Part] | str" = EXECUTION
    function_at: Callable[..., object] | str | None = None  # None: derived from the spec
    examples: tuple[str, ...] = ()
    noun: str = "units"  # what progress counts
    first: str = "opening"  # what is shown until there is progress
    blocks: tuple[int, ...] = ()  # how freed memory goes back; see engine.allocator.give_back
    section_at: "Section | str | None" = None  # what a report shows of it
    exhibit_at: "Callable[[Run], Drawn] | str | None" = None  # what is drawn of its run folders

    @cached_property
    def spec(self) -> "type[Runnable[object]]":
        """The spec of its options."""
        return cast("type[Runnable[object]]", load_at(self.spec_at))

    @cached_property
    def where(self) -> "type[Part]":
        """The options that say where it runs."""
        return cast("type[Part]", load_at(self.where_at))

    @cached_property
    def function(self) -> Callable[..., object]:
        """The Python function that does it and returns `Results`."""
        if self.function_at is not None:
            return cast(Callable[..., object], load_at(self.function_at))
        from isoscope.study.keywords import function_of

        return function_of(self.spec, self.where)

    @cached_property
    def section(self) -> "Section | None":
        """The section of a report that is about it."""
        return cast("Section | None", load_at(self.section_at))

    @cached_property
    def exhibit(self) -> "Callable[[Run], Drawn] | None":
        """The function that draws what is special about its run folders."""
        return cast("Callable[[Run], Drawn] | None", load_at(self.exhibit_at))


EXPERIMENTS: Registry[Experiment] = Registry("experiment")


def add(experiment: Experiment) -> None:
    """Register an experiment whose parts are named by where they are."""
    EXPERIMENTS.add(experiment.name, experiment)


def register(
    spec: "type[Runnable[object]]",
    *,
    help: str = "",
    examples: tuple[str, ...] = (),
    noun: str = "units",
    where: "type[Part] | str" = EXECUTION,
    function: Callable[..., object] | None = None,
) -> Callable[..., object]:
    """Register an experiment under the name of its spec's command; return its function.

    The results of the spec are `Results`; one whose worker writes no run folder in `finish` is
    registered with `where=EngineOptions`. Without a function, one is derived from the spec.
    """
    text = help or (spec.__doc__ or "").strip()
    add(Experiment(spec.command, text, spec, where, function, examples, noun))
    return EXPERIMENTS[spec.command].function


def built_in() -> list[Experiment]:
    """Return the experiments of this package."""
    return [find_experiment(name) for name in BUILT_IN]


def known_experiments() -> list[Experiment]:
    """Return the experiments of this package and of others, without what cannot be loaded."""
    found = built_in()
    for name in others():
        with suppress(ConfigError, UnknownNameError):
            found.append(find_experiment(name))
    return found


def find_experiment(name: str) -> Experiment:
    """Return an experiment by name: of this package, or registered by another one."""
    if name in BUILT_IN:
        import_module(BUILT_IN[name])
    elif name not in EXPERIMENTS:
        for entry in entries():
            if entry.name == name:
                _import(entry)
    return EXPERIMENTS[name]


def others() -> Iterator[str]:
    """Yield the names of experiments that other packages have registered or announce."""
    names = [*EXPERIMENTS, *(entry.name for entry in entries())]
    yield from (name for name in dict.fromkeys(names) if name not in BUILT_IN)


def entries() -> "list[EntryPoint]":
    """Return the entry points of other packages.

    The metadata of all installed packages takes a tenth of a second to parse, longer than
    all else that a help page needs; so it is searched for the name of the group first.
    """
    if not any(_mentions(Path(each)) for each in dict.fromkeys(sys.path) if each):
        return []
    from importlib.metadata import entry_points

    return list(entry_points(group=GROUP))


def _mentions(folder: Path) -> bool:
    """Whether a package in a folder has entry points of our group."""
    try:
        with os.scandir(folder) as found:
            places = [e.path for e in found if e.name.endswith((".dist-info", ".egg-info"))]
    except OSError:
        return False
    for place in places:
        with suppress(OSError):
            if GROUP.encode() in Path(place, "entry_points.txt").read_bytes():
                return True
    return False


def _import(entry: "EntryPoint") -> None:
    """Import the module that an entry point names; it has to register the experiment."""
    try:
        entry.load()
        _ = EXPERIMENTS[entry.name]
    except Exception as error:  # whatever somebody else's module does wrong
        why = error.problem if isinstance(error, UnknownNameError) else repr(error)
        owner = entry.dist.name if entry.dist is not None else "the package it comes from"
        raise ConfigError(
            f"cannot load the experiment {entry.name!r} from {entry.value!r}: {why}",
            hint=f"the module has to register it; reinstall or remove {owner}",
            slug="experiment-load",
        ) from error


def load_at(where: object) -> object:
    """Return what "module:Name" names; anything else is returned as it is."""
    if not isinstance(where, str):
        return where
    module, _, name = where.partition(":")
    return cast(object, getattr(import_module(module), name))

"""A dictionary of named things that suggests the right name when a wrong one is looked up."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import TypeVar

from isoscope.errors import UnknownColumnError, UnknownNameError

T = TypeVar("T")


def unknown(kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """Return the error for a name that is not known, with the nearest that is."""
    names = [str(each) for each in known]
    near = get_close_matches(name, names, n=1)
    listed = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    hint = f"did you mean {near[0]!r}?" if near else f"choose from: {listed or '(none)'}"
    error = UnknownColumnError if kind == "column" else UnknownNameError
    return error(
        f"no {kind} is called {name!r}", hint=hint, slug=f"unknown-{kind.replace(' ', '-')}"
    )


def check_names(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raise for the first name that is not known."""
    there = list(known)
    for name in names:
        if name not in there:
            raise unknown(kind, name, there)


class Registry(dict[str, T]):
    """Things of one kind by name, in the order they were added."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def add(self, name: str, thing: T) -> None:
        """Add a thing under a name that is not taken."""
        if name in self:
            raise ValueError(f"{self.kind} {name!r} is registered twice")
        self[name] = thing

    def __missing__(self, name: str) -> T:
        raise unknown(self.kind, name, self)

"""The record that describes a measure, and the decorator that files it."""

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Literal

from isoscope.dataclass import dataclass
from isoscope.errors import TooFewRowsError
from isoscope.measures.interval import Spread, interval
from isoscope.measures.jackknife import Scale
from isoscope.measures.view import GroupView, Spectrum, View
from isoscope.measures.view.axes import Axes, FirstHalfAxes, SecondHalfAxes
from isoscope.registry import Registry
from isoscope.types import Note

Invariance = Literal["rotation", "scale", "shift"]
Level = float | Callable[..., float] | None  # a number, or a function of (n, d)
# When a measure is computed by default: always, for text with its tokens, only by name, or of
# heads of attention and of gradients, which have measures of their own.
Offer = Literal["always", "text", "asked", "heads", "gradients"]
NOT_OF_ROWS: tuple[Offer, ...] = ("heads", "gradients")


@dataclass(frozen=True, slots=True)
class Companion:
    """A number that belongs beside a measure, such as the value of a random cloud."""

    suffix: str
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Measure:
    """One number about a cloud of vectors, with what is needed to trust and to read it."""

    name: str
    reads: type[View]  # the only thing it may look at
    compute: Callable[..., float]
    isotropic: Level  # its value when every direction is alike
    collapsed: Level  # its value when all rows point one way
    unmoved_by: frozenset[Invariance]  # tests/laws checks each claim made here, and no others
    cite: str
    formula: str
    misleads: str
    interval: Callable[..., tuple[float, float] | None] | None = None  # None: by group
    spread: Callable[..., Spread | None] | None = None  # None: by group
    warn: Callable[..., list[str]] | None = None  # of view, value, standard error or None
    published: Callable[..., float] | None = None  # as its paper has it, where we differ
    companions: Callable[..., list[Companion]] | None = None
    beside: tuple[str, ...] = ()  # the suffixes of the companions
    corrected: Scale | None = None  # the scale in which few documents are jackknifed
    by_participation: bool = False  # a function of the participation ratio and the width
    second_pass: bool = False
    offered: Offer = "always"
    logarithmic: bool = False  # the interval is symmetric in the logarithm
    skewed: bool = False  # it reaches further up where few groups are far above the others
    bounds: tuple[Level, Level] = (None, None)  # what its values lie between
    options: tuple[str, ...] = ()  # settings it takes, such as zeta

    @property
    def title(self) -> str:
        """The first line of the function's docstring: lists and reports show this."""
        return (self.compute.__doc__ or "").partition("\n")[0]

    @property
    def default(self) -> bool:
        """Whether it is computed of any rows by default: one pass is enough for it."""
        return self.offered == "always" and not self.second_pass

    @property
    def views(self) -> tuple[type[View], ...]:
        """What its reading is made of; none of them waits for another one."""
        if not issubclass(self.reads, Spectrum):
            return (self.reads,)
        # those of halves are for its interval
        return (Axes,) if self.by_participation else (Axes, FirstHalfAxes, SecondHalfAxes)

    @property
    def note(self) -> Note:
        """What a reader should know."""
        return Note(self.name, self.title, self.formula, self.cite, self.misleads)


MEASURES: Registry[Measure] = Registry("measure")


def measure(name: str, **record: Any) -> Callable[[Callable[..., float]], Callable[..., float]]:
    """File a plain function as a measure; the function itself is left untouched."""

    def file(compute: Callable[..., float]) -> Callable[..., float]:
        keywords = inspect.signature(compute).parameters.values()
        options = tuple(p.name for p in keywords if p.kind is p.KEYWORD_ONLY)
        unmoved = frozenset(record.pop("unmoved_by"))
        MEASURES.add(
            name, Measure(name, compute=compute, unmoved_by=unmoved, options=options, **record)
        )
        return compute

    return file


def companions_by_group(**computes: Callable[..., float]) -> Callable[..., list[Companion]]:
    """Return what computes companions by suffix; one of too few rows is skipped."""

    def companions(seen: GroupView, _published: bool) -> list[Companion]:
        found: list[Companion] = []
        for suffix, compute in computes.items():
            with suppress(TooFewRowsError):
                value = compute(seen)
                ends = interval(seen, compute, value) or (None, None)
                found.append(Companion(suffix, value, *ends))
        return found

    return companions


def level(
    of: Level, n: int, d: int, options: Mapping[str, object] | None = None
) -> float | None:
    """Return what an isotropic or collapsed cloud of this size would read."""
    if not callable(of):
        return of
    taken = inspect.signature(of).parameters
    return of(n, d, **{k: v for k, v in (options or {}).items() if k in taken})

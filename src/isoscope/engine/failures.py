"""Units that fail: which are tried again, which are given up, and how the run ends then.

A unit that fails is done again after the others; one that fails every time is given up while
the rest goes on. What is done is kept, and the same command tries what is missing.
"""

import traceback
from collections.abc import Sequence
from dataclasses import field
from threading import Lock

import msgspec

from isoscope.dataclass import dataclass
from isoscope.errors import (
    ConfigError,
    EngineError,
    IsoscopeError,
    MissingPackageError,
    RowError,
    StoreError,
    TooFewRowsError,
    UnknownNameError,
    WriteError,
)
from isoscope.store.run import FAILED

LISTED = 5  # units that a message names
TRACED = 100  # units whose traceback is recorded
HOPELESS = 10  # units that are given up before any is done: the others would fail as well
# The input or an option is wrong: it would be the same every time, and for other units.
SAME_EVERY_TIME = (
    RowError,
    TooFewRowsError,
    ConfigError,
    UnknownNameError,
    MissingPackageError,
)


# Of our own errors, those that another try may be spared: a worker died, a file was damaged.
MAY_PASS = (EngineError, StoreError)


class Failure(msgspec.Struct, frozen=True):
    """One unit that was given up."""

    stage: int  # counted from 1, as in the names of folders
    unit: int
    label: str  # what it is, such as the name of a checkpoint
    tries: int
    error: str
    traceback: str = ""

    @property
    def name(self) -> str:
        """What messages call the unit."""
        return f"unit {self.unit}" + f" ({self.label})" * bool(self.label)


class UnitsMissingError(EngineError):
    """Some units failed every time; the others are done."""


@dataclass
class Failures:
    """What became of units that failed; engines ask it what to do next."""

    sizes: Sequence[int]  # how many units each stage has
    retries: int = 2  # of a unit, after its first failure
    allow_missing: bool = False
    kept_in: str = ""  # the folder in which what is done outlives an error
    given_up: dict[tuple[int, int], Failure] = field(
        default_factory=dict[tuple[int, int], Failure]
    )
    _tries: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    _first: BaseException | None = None
    _lock: Lock = field(default_factory=Lock)

    def fail(
        self,
        stage: int,
        unit: int,
        label: str,
        error: BaseException,
        *,
        any_done: bool,
        final: bool = False,
    ) -> bool:
        """Return whether a unit that has failed is to be tried again.

        Raises its error where the run cannot go on: nothing can be written, an option or the
        input is wrong, or nothing that is done would outlive the end of the run.
        """
        if not isinstance(error, Exception) or isinstance(error, WriteError):
            raise error
        same = isinstance(error, SAME_EVERY_TIME)
        if same and not self.allow_missing:
            raise error
        with self._lock:
            where = stage, unit
            tries = self.retries + 1 if final else self._tries.get(where, 0) + 1
            self._tries[where] = tries
            if tries <= self.retries and _may_pass(error):
                return True
            if not (self.allow_missing or self.kept_in):
                raise error
            few = len(self.given_up) < TRACED
            text = "".join(traceback.format_exception(error)) if few else ""
            self.given_up[where] = Failure(stage + 1, unit, label, tries, say(error), text)
            traceback.clear_frames(error.__traceback__)  # or what it had open stays in memory
            self._first = self._first or error
            if len(self.given_up) >= HOPELESS and not any_done:
                raise self.error(stopped=True)
        return False

    def missing(self, stage: int) -> set[int]:
        """Return the units of a stage that were given up."""
        return {unit for where, unit in self.given_up if where == stage}

    @property
    def warning(self) -> str:
        """What readers of the results should know; "" where nothing is missing."""
        return f"{self._count} missing: {self._names()}" if self.given_up else ""

    def error(self, *, stopped: bool = False) -> IsoscopeError:
        """Return the error with which the run ends."""
        first, *more = self.in_order()
        only = self._first
        if not more and isinstance(only, IsoscopeError):
            if self.sizes[first.stage - 1] == 1:
                return only
            hint = f"{only.hint}; {first.name} is missing, {self._what_next}"
            found: IsoscopeError = type(only)(only.problem, hint=hint, slug=only.slug)
        else:
            many = f"stopped after {len(self.given_up)} units failed and none was done"
            found = UnitsMissingError(
                f"{many if stopped else f'{self._count} missing'}: {self._reasons()}",
                hint=self._what_next
                + (f"; {self.kept_in}/{FAILED} has tracebacks" if self.kept_in else ""),
                slug="units-missing",
            )
        found.__cause__ = only
        return found

    @property
    def _what_next(self) -> str:
        again = "the same command tries it again, and --allow-missing finishes without it"
        return f"what is done is kept in {self.kept_in}: {again}" if self.kept_in else again

    @property
    def _count(self) -> str:
        count = len(self.given_up)
        of = sum(self.sizes[stage] for stage in {stage for stage, _ in self.given_up})
        return f"{count} of {of} units {'is' if count == 1 else 'are'}"

    def in_order(self) -> list[Failure]:
        """Return the units that were given up, in the order of the plan."""
        return [self.given_up[where] for where in sorted(self.given_up)]

    def _names(self) -> str:
        return _list([each.name for each in self.in_order()])

    def _reasons(self) -> str:
        return _list([f"{each.name}: {each.error}" for each in self.in_order()], "; ")


def damaged_result(unit: int) -> StoreError:
    """Return the error of a unit whose result is not what was written."""
    return StoreError(
        f"the result of unit {unit} was damaged on its way: its checksum is another",
        hint="check the disk and the network of the run folder",
        slug="store-damaged",
    )


def _may_pass(error: BaseException) -> bool:
    """Whether another try may end otherwise: what we say of an input stays as it is."""
    return not isinstance(error, IsoscopeError) or isinstance(error, MAY_PASS)


def say(error: BaseException) -> str:
    """Return an error in a line."""
    if isinstance(error, IsoscopeError):
        return error.problem
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__


def _list(names: list[str], comma: str = ", ") -> str:
    """Return names in a line, a bounded number of them.

    >>> _list([f"unit {n}" for n in range(9)])
    'unit 0, unit 1, unit 2, unit 3, unit 4 and 4 more'
    """
    more = len(names) - LISTED
    return comma.join(names[:LISTED]) + (f" and {more} more" if more > 0 else "")

"""Errors a user can cause: the problem, a hint and an address; the command line prints them."""

import re
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from typing import ClassVar

from isoscope.escape import plain

HELP = "isoscope help"  # followed by a slug it prints the section of docs/errors.md
_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z-]*)(?:=([\w-]+(?:[.,][\w-]+)*))?")
_NOT_OURS = {"upgrade", "nproc-per-node"}  # flags of other programs
SWITCHES = {
    "all",
    "allow-missing",
    "against-random",
    "as-published",
    "by-order",
    "free",
    "no-bos",
    "no-final-bias",
    "no-theories",
    "overwrite",
    "per-layer",
    "skip-bad",
    "skip-broken",
    "tied",
    "trust-remote-code",
    "untrained",
}
KEYWORDS = {"dimension": "dimensions", "measure": "measures", "norm": "norms", "site": "sites"}


class IsoscopeError(Exception):
    """Something cannot be done as it was called; not a bug.

    Problem and hint name options as flags, values attached: `--dtype=float32`. Python shows
    them as keywords, the command line as they are.
    """

    code: ClassVar[int] = 2

    def __init__(self, problem: str, *, hint: str, slug: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint
        self.slug = slug

    def __str__(self) -> str:
        return as_keywords(self.with_flags())

    def with_flags(self) -> str:
        """Return the message for the command line; control characters are escaped."""
        return error_text(self.problem, self.hint, self.slug)

    def __reduce__(self) -> tuple[object, ...]:  # so that it survives a process pool
        return partial(type(self), hint=self.hint, slug=self.slug), (self.problem,)


def error_text(problem: str, hint: str, slug: str) -> str:
    """Return the three lines of an error; names in them come from files of anyone."""
    return f"{plain(problem)}\n  hint: {plain(hint)}\n  see:  {HELP} {plain(slug)}"


def as_keywords(text: str) -> str:
    """Return a text with flags written as keywords of Python.

    >>> as_keywords("lower --length, try --dtype=float32, or begin again with --overwrite")
    'lower length, try dtype="float32", or begin again with overwrite=True'
    """
    return _FLAG.sub(_keyword, text)


def _keyword(found: re.Match[str]) -> str:
    flag, value = found[1], found[2]
    if flag in _NOT_OURS:
        return found[0]
    name = KEYWORDS.get(flag, flag.replace("-", "_"))
    if value is None:
        return f"{name}=True" if flag in SWITCHES else name
    is_number = re.fullmatch(r"-?[\d.]+", value)
    return f"{name}={value}" if is_number else f'{name}="{value}"'


def need_packages(who: str, packages: Sequence[str], extra: str) -> None:
    """Refuse to begin where a package is missing; the error names the extra to install."""
    for package in packages:
        if find_spec(package) is None:
            raise MissingPackageError(
                f"{who} needs {package}, got none",
                hint=f"pip install 'isoscope[{extra}]'",
                slug="extra-missing",
            )


class UnknownNameError(IsoscopeError):
    """No measure, column, site or the like has this name."""


class UnknownColumnError(UnknownNameError):
    """No column of a table has this name."""


class SourceError(IsoscopeError):
    """A file or stream of vectors cannot be read as what it claims to be."""


class ColumnError(SourceError):
    """A column was named where there are no columns."""


class DocumentError(SourceError):
    """One document, image or sound file cannot be used; the others are not affected."""


class MissingPackageError(SourceError, ImportError):
    """A package is not installed that only some of isoscope needs."""


class RowError(SourceError):
    """A row holds what cannot be measured: NaN, infinity, the wrong width."""


class TooFewRowsError(IsoscopeError):
    """A number needs more rows, documents or distinct rows than there are."""


class UndefinedError(IsoscopeError):
    """A number has no value for these rows, such as a spread of identical rows."""


class MergeError(IsoscopeError):
    """Two parts do not belong together."""


class StoreError(IsoscopeError):
    """A run folder cannot be written or read."""


class WriteError(StoreError):
    """The disk is full or may not be written to: no other unit could be kept either."""


class RunExistsError(StoreError):
    """There is something already where a run should be written."""


class ResumeError(StoreError):
    """An unfinished run was started with another model, corpus or settings."""


class LockedError(StoreError):
    """Another process is writing this run."""


class EngineError(IsoscopeError):
    """Units of work cannot be run where that was asked for."""


class ConfigError(IsoscopeError):
    """A setting is missing, unknown or of the wrong kind."""


class PenaltyError(IsoscopeError):
    """A penalty was given hidden states, a mask or batches that it cannot work on."""


class StreamError(PenaltyError):
    """No shrinkage matrix can be found from these batches."""


class GateError(IsoscopeError):
    """A gate tripped: what was checked is not as it should be. Nothing failed."""

    code = 1

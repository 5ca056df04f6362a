"""Errors a user can cause: the problem, a hint and an address; the command line prints them."""

from typing import ClassVar

DOCS = "docs/errors.md"


class IsoscopeError(Exception):
    """Something that was asked for cannot be done; not a bug."""

    code: ClassVar[int] = 2

    def __init__(self, problem: str, *, hint: str, slug: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint
        self.slug = slug

    def __str__(self) -> str:
        return f"{self.problem}\n  hint: {self.hint}\n  see:  {DOCS}#{self.slug}"

    def __reduce__(self) -> tuple[object, ...]:  # so that it survives a process pool
        return _rebuilt, (type(self), self.problem, self.hint, self.slug)


def _rebuilt(kind: type[IsoscopeError], problem: str, hint: str, slug: str) -> IsoscopeError:
    return kind(problem, hint=hint, slug=slug)


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

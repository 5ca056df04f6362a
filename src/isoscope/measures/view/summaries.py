"""The summaries of one site, and the views of them, each made once."""

from typing import Any, TypeVar

from isoscope.errors import IsoscopeError, TooFewRowsError, UndefinedError

V = TypeVar("V")


class Summaries(dict[type[Any], Any]):
    """Summaries by the accumulator they come from; one that failed holds its error.

    Without intervals, views leave out each group's part, which only intervals need.
    """

    def __init__(self, *, intervals: bool = True) -> None:
        super().__init__()
        self.intervals = intervals
        self.sampled: set[type[Any]] = set()  # made from the sample, not from all rows
        self._views: dict[type[Any], Any] = {}

    def __missing__(self, kind: type[Any]) -> Any:
        if getattr(kind, "by_token", False):
            raise TooFewRowsError(
                "a measure by token type needs rows with tokens, got rows without",
                hint="survey a model over text; vectors on disk have no tokens",
                slug="no-tokens",
            )
        raise TooFewRowsError(
            f"no {kind.__name__.lower()} were kept, which this measure reads",
            hint="measure the vectors again with this measure, or with --all",
            slug="summary-not-kept",
        )

    def of(self, kind: type[Any]) -> Any:
        """Return a summary, or raise the error that stands in its place."""
        found = self[kind]
        if isinstance(found, IsoscopeError):
            raise found
        return found

    def view(self, kind: type[V]) -> V:
        """Return the view of this kind, made once; or raise what kept it from being made."""
        if kind not in self._views:
            try:
                self._views[kind] = kind.of(self)  # type: ignore[attr-defined]
            except (TooFewRowsError, UndefinedError) as problem:
                self._views[kind] = problem
        found = self._views[kind]
        if isinstance(found, IsoscopeError):
            raise found
        return found

"""Which documents of a corpus are run: in a seeded order, until there are tokens enough."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from isoscope.errors import SourceError
from isoscope.study.schedule import Item


@dataclass
class Selection:
    """The documents that were taken, and how many were cut or passed over."""

    items: list[Item] = field(default_factory=list[Item])
    rows: int = 0
    truncated: int = 0
    short: int = 0  # fewer than two positions
    bad: list[str] = field(default_factory=list[str])

    def warnings(self) -> list[str]:
        """Return what a reader of the run should know."""
        said: list[str] = []
        if self.truncated:
            said.append(f"{self.truncated} of {len(self.items)} documents were truncated")
        if self.short:
            said.append(f"{self.short} documents shorter than two tokens were left out")
        if self.bad:
            said.append(f"{len(self.bad)} documents could not be read and were skipped")
        return said


def selected(
    ordinals: Iterable[int],
    prepare: Callable[[int], Any | None],
    *,
    tokens: int | None,
    skip_bad: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Selection:
    """Return the first documents in this order that have as many tokens as asked for.

    `prepare` gives the length and cost of a document, or None where it is too short.
    """
    found = Selection()
    for ordinal in ordinals:
        if tokens is not None and found.rows >= tokens:
            break
        try:
            prepared = prepare(int(ordinal))
        except SourceError as error:
            if not skip_bad:
                raise
            found.bad.append(error.problem)
            continue
        if prepared is None:
            found.short += 1
            continue
        found.items.append(Item(int(ordinal), prepared.length, prepared.cost))
        found.rows += prepared.length
        found.truncated += bool(prepared.truncated)
        if progress is not None:
            progress(found.rows)
    return found

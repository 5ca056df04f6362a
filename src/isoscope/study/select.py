"""Which documents of a corpus are run: in a seeded order, until there are tokens enough."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isoscope.errors import SourceError, TooFewRowsError
from isoscope.study.schedule import Item

if TYPE_CHECKING:
    from isoscope.capture.feed import Batch, Feed, Prepared
    from isoscope.source.corpus.corpus import Corpus


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
    prepare: "Callable[[int], Prepared | None]",
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


def prepare_documents(
    corpus: "Corpus", feed: "Feed", *, documents: int | None = None, seed: int | None = None
) -> "list[tuple[int, Prepared]]":
    """Return prepared documents with their ordinals; those that are too short are skipped.

    In the order of the corpus, or in one drawn by a seed, at most as many as `documents`.
    """
    found: list[tuple[int, Prepared]] = []
    for ordinal in range(len(corpus)) if seed is None else corpus.order(seed):
        if documents is not None and len(found) >= documents:
            break
        ready = feed.prepare(corpus.document(int(ordinal)))
        if ready is not None:
            found.append((int(ordinal), ready))
    if not found:
        raise TooFewRowsError(
            f"expected documents of at least two tokens in {corpus.place or corpus.name}, "
            f"got none in {len(corpus)}",
            hint="give a corpus with longer documents",
            slug="corpus-short",
        )
    return found


def batches_of(prepared: "Sequence[Prepared]", feed: "Feed", size: int) -> "Iterator[Batch]":
    """Yield batches of neighbours; of one document each where padding would change them."""
    step = size if feed.mixes_lengths else 1
    for start in range(0, len(prepared), step):
        yield feed.batch(prepared[start : start + step])

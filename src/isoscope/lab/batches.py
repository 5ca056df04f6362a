"""A few documents of a corpus as batches, in their own order: what small experiments run."""

from collections.abc import Iterator, Sequence
from typing import Any

from isoscope.capture.feed import Batch, Feed, Prepared
from isoscope.errors import TooFewRowsError
from isoscope.source.corpus import open_corpus
from isoscope.source.corpus.corpus import Corpus


def corpus_of(corpus: Any, **reading: Any) -> Corpus:
    """Return a corpus that is open, or open what was named."""
    return corpus if isinstance(corpus, Corpus) else open_corpus(corpus, **reading)


def prepared_of(
    corpus: Corpus, feed: Feed, *, documents: int | None = None, seed: int | None = None
) -> list[tuple[int, Prepared]]:
    """Return documents made ready, with their ordinals; those too short are passed over.

    In the order of the corpus, or in one drawn by a seed, until there are enough.
    """
    ordinals = range(len(corpus)) if seed is None else corpus.order(seed)
    found: list[tuple[int, Prepared]] = []
    for ordinal in ordinals:
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


def batched(prepared: Sequence[Prepared], feed: Feed, size: int) -> Iterator[Batch]:
    """Yield batches of neighbours; of one document each where padding would change them."""
    step = size if feed.mixes_lengths else 1
    for start in range(0, len(prepared), step):
        yield feed.batch(prepared[start : start + step])

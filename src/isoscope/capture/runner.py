"""Running batches through a model while its sites are heard; smaller ones if memory ends."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from isoscope.capture.feed.base import Feed
from isoscope.capture.feed.batch import Batch, Prepared
from isoscope.capture.listener import Listener
from isoscope.capture.sites import Sites
from isoscope.capture.tap import first_tensor
from isoscope.site import POOLED

_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


class Pools(Protocol):
    """How one vector is made of the states of a document."""

    def pooled(self, states: Tensor, mask: Tensor) -> Tensor:
        """Return (documents, width) from (documents, positions, width)."""
        ...


class Runner:
    """Runs the documents of a unit through a model."""

    def __init__(
        self,
        body: nn.Module,
        sites: Sites,
        feed: Feed,
        *,
        pooling: Pools | None = None,
        truncate: int | None = None,
    ) -> None:
        self.body = body
        self.sites = sites
        self.feed = feed
        self.pooling = pooling
        self.truncate = truncate  # pooled vectors are cut to so many numbers

    def run(
        self,
        names: Sequence[str],
        batches: Iterable[Sequence[Any]],
        listener: Listener,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Let a listener hear sites while batches of documents go through the model."""
        taken = [name for name in names if name != POOLED]
        for documents in batches:
            prepared = [each for each in map(self.feed.prepare, documents) if each is not None]
            if not prepared:
                continue
            batch = self.feed.batch(prepared)
            self.pass_through(batch, taken, listener, pooled=POOLED in names)
            if progress is not None:
                progress(sum(each.length for each in prepared))

    def pass_through(
        self, batch: Batch, names: Sequence[str], listener: Listener, *, pooled: bool = False
    ) -> None:
        """Run one batch."""
        listener.begin(batch)
        with self.sites.listening(names, listener.hear) as calls, torch.inference_mode():
            calls.restart()
            output = self.body(**batch.inputs)
        if pooled and self.pooling is not None:
            states = first_tensor(output)
            if states is not None:
                marks = batch.marks("", states.shape[1])
                mask = marks.real.clone()
                mask[:, : self.feed.prompted] &= self._prompt_counts
                vectors = self.pooling.pooled(states, mask)[:, : self.truncate]
                listener.hear_whole(POOLED, vectors)

    @property
    def _prompt_counts(self) -> bool:
        return bool(getattr(self.pooling, "include_prompt", True))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a batch was too large for the memory there is."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(
        words in str(error).lower() for words in _OUT_OF_MEMORY
    )


def halved(batches: Sequence[Sequence[Any]], times: int) -> Iterator[Sequence[Any]]:
    """Yield batches cut in half so many times, in the same order."""
    for batch in batches:
        parts = [batch]
        for _ in range(times):
            parts = [half for part in parts for half in _halves(part)]
        yield from parts


def _halves(batch: Sequence[Any]) -> list[Sequence[Any]]:
    middle = (len(batch) + 1) // 2
    return [half for half in (batch[:middle], batch[middle:]) if len(half)]


__all__ = ["POOLED", "Prepared", "Runner", "halved", "is_out_of_memory"]

"""Running batches through a model while a listener hears its sites, within its memory."""

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol, TypeVar

import torch
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from isoscope.capture.feed.base import Batch, DocumentLike, Feed
from isoscope.capture.listener import Listener
from isoscope.capture.sites import Sites
from isoscope.capture.tap import first_tensor
from isoscope.site import POOLED

T = TypeVar("T")
_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


class Pools(Protocol):
    """How one vector is made of the states of a document."""

    @property
    def include_prompt(self) -> bool:
        """Whether tokens of the prompt are pooled too."""
        ...

    def pool(self, states: Tensor, mask: Tensor) -> Tensor:
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
        self.truncate = truncate  # the width pooled vectors are cut to

    def run(
        self,
        names: Sequence[str],
        batches: Iterable[Sequence[DocumentLike]],
        listener: Listener,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Let a listener hear sites while batches of documents go through the model."""
        sites = [name for name in names if name != POOLED]
        for documents in batches:
            prepared = [each for each in map(self.feed.prepare, documents) if each is not None]
            if not prepared:
                continue
            batch = self.feed.batch(prepared)
            self.pass_through(batch, sites, listener, pooled=POOLED in names)
            if progress is not None:
                progress(sum(each.length for each in prepared))
        listener.finish()

    def pass_through(
        self, batch: Batch, names: Sequence[str], listener: Listener, *, pooled: bool = False
    ) -> None:
        """Run one batch."""
        listener.begin(batch)
        with self.sites.listening(names, listener.hear) as calls, torch.inference_mode():
            calls.restart()
            output = self.body(**batch.inputs)
        states = first_tensor(output) if pooled else None
        if states is not None and self.pooling is not None:
            mask = batch.marks("", states.shape[1]).real.clone()
            mask[:, : self.feed.prompt_length] &= self.pooling.include_prompt
            vectors = self.pooling.pool(states, mask)[:, : self.truncate]
            listener.hear_whole(POOLED, vectors)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a batch was too large for the memory there is."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(
        words in str(error).lower() for words in _OUT_OF_MEMORY
    )


def free_memory() -> int:
    """Return the bytes of memory that are free to be used."""
    bound = os.environ.get("ISOSCOPE_MEMORY")
    if bound and bound.isdigit():
        return int(bound)
    with suppress(OSError, ValueError, IndexError):  # not every system has it
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (OSError, ValueError, AttributeError):
        return 4 * 2**30


def halve(batches: Sequence[Sequence[T]], times: int) -> Iterator[Sequence[T]]:
    """Yield batches cut in half `times` times, in the same order."""
    for batch in batches:
        parts = [batch]
        for _ in range(times):
            parts = [half for part in parts for half in _halves(part)]
        yield from parts


def _halves(batch: Sequence[T]) -> list[Sequence[T]]:
    middle = (len(batch) + 1) // 2
    return [half for half in (batch[:middle], batch[middle:]) if len(half)]


@contextmanager
def threads(number: int) -> Generator[None]:
    """Compute with a fixed number of torch threads, and one of NumPy, until the block ends.

    With another number sums differ in their last bits.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)

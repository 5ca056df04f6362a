"""Running batches through a model while a listener hears its sites, within its memory."""

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch
from threadpoolctl import threadpool_limits
from torch import nn

from isoscope.capture.feed.base import Batch, Feed, Prepared
from isoscope.capture.listener import Listener
from isoscope.capture.model.pooling import Pooling
from isoscope.capture.sites import Sites
from isoscope.capture.tap import first_tensor
from isoscope.site import POOLED

T = TypeVar("T")
_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


@dataclass(frozen=True, eq=False)
class Runner:
    """Runs the documents of a unit through a model."""

    body: nn.Module
    sites: Sites
    feed: Feed
    pooling: Pooling | None = None  # how one vector is made of the states of a document
    truncate: int | None = None  # the width pooled vectors are cut to

    def run(
        self,
        names: Sequence[str],
        batches: Iterable[Sequence[Prepared | None]],
        listener: Listener,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Let a listener hear sites while batches of documents go through the model.

        A document that is None has nothing to be measured.
        """
        sites = [name for name in names if name != POOLED]
        for documents in batches:
            prepared = [each for each in documents if each is not None]
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
            middles = [(part, (len(part) + 1) // 2) for part in parts]
            halves = [half for part, at in middles for half in (part[:at], part[at:])]
            parts = [half for half in halves if len(half)]
        yield from parts


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

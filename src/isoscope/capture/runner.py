"""Running batches through a model while a listener hears its sites, within its memory."""

import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import TypeVar

import torch
from torch import Tensor, nn

from isoscope.blas import one_blas_thread
from isoscope.capture.feed.base import Batch, Feed, Prepared
from isoscope.capture.listener import Listener
from isoscope.capture.model.pooling import Pooling
from isoscope.capture.order import StoppedError
from isoscope.capture.sites import Sites
from isoscope.capture.tap import Calls, first_tensor
from isoscope.dataclass import dataclass
from isoscope.errors import IsoscopeError
from isoscope.site import POOLED

T = TypeVar("T")
R = TypeVar("R")
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
        *,
        lanes: int = 1,
    ) -> None:
        """Let a listener hear sites while batches of documents go through the model.

        A document that is None has nothing to be measured. With several lanes as many batches
        are under way at a time, each on a thread of its own, which changes no sum; a model
        that changes itself meanwhile is refused.
        """
        before = _state_of(self.body) if lanes > 1 else []
        lane = threading.local()
        taking, ready = threading.Lock(), self._ready(batches)
        errors: list[tuple[int, BaseException]] = []  # and the batches they came from
        number = torch.get_num_threads()

        def hear(site: str, tensor: Tensor) -> None:
            if lane.listener.has_batch:  # else documents are made ready, perhaps by the model
                lane.listener.hear(site, tensor)

        def work(own: Listener) -> None:
            torch.get_num_threads()  # a new thread's first call sets it to the last one set
            torch.set_num_threads(number)
            lane.listener, batch_number = own, 0
            try:
                while not errors:
                    with taking:
                        taken = next(ready, None)
                        if taken is None:
                            return
                        batch, rows = taken
                        batch_number = own.begin(batch)
                    self._hear_batch(batch, own, calls, pooled=POOLED in names)
                    own.end()
                    del taken, batch
                    if progress is not None:
                        with taking:
                            progress(rows)
            except BaseException as error:  # also an interrupt, which comes to the main thread
                errors.append((batch_number, error))
                own.stop()

        with self.sites.listening([name for name in names if name != POOLED], hear) as calls:
            others = [
                threading.Thread(target=work, args=(listener.lane(),), daemon=True)
                for _ in range(lanes - 1)
            ]
            for thread in others:
                thread.start()
            work(listener)
            _join(others, listener)
        _raise_first(errors)
        if lanes > 1 and not _is_unchanged(self.body, before):
            raise ChangesItselfError
        listener.finish()

    def _ready(
        self, batches: Iterable[Sequence[Prepared | None]]
    ) -> Iterator[tuple[Batch, int]]:
        """Yield the inputs of the batches that have documents, and how many rows each has."""
        for documents in batches:
            prepared = [each for each in documents if each is not None]
            if prepared:
                yield self.feed.batch(prepared), sum(each.length for each in prepared)

    def pass_through(
        self, batch: Batch, names: Sequence[str], listener: Listener, *, pooled: bool = False
    ) -> None:
        """Run one batch."""
        listener.begin(batch)
        with self.sites.listening(names, listener.hear) as calls:
            self._hear_batch(batch, listener, calls, pooled=pooled)

    def _hear_batch(
        self, batch: Batch, listener: Listener, calls: Calls, *, pooled: bool
    ) -> None:
        with torch.inference_mode():
            calls.restart()
            output = self.body(**batch.inputs)
        states = first_tensor(output) if pooled else None
        if states is not None and self.pooling is not None:
            mask = batch.marks("", states.shape[1]).real.clone()
            mask[:, : self.feed.prompt_length] &= self.pooling.include_prompt
            vectors = self.pooling.pool(states, mask)[:, : self.truncate]
            listener.hear_whole(POOLED, vectors)


def _join(threads: Sequence[threading.Thread], listener: Listener) -> None:
    """Wait for threads; an interrupt stops them first."""
    try:
        for thread in threads:
            thread.join()
    except BaseException:
        listener.stop()
        for thread in threads:
            thread.join()
        raise


def _raise_first(errors: list[tuple[int, BaseException]]) -> None:
    """Raise the error of the first batch that failed, if any has."""
    failed = [each for each in errors if not isinstance(each[1], StoppedError)]
    if not failed:
        return
    error = min(failed, key=itemgetter(0))[1]
    errors.clear()
    try:
        raise error
    finally:
        del error, failed  # else memory of the failed pass would wait for the collector


class ChangesItselfError(Exception):
    """A model has changed itself in a forward pass: two at a time may be wrong."""


def _state_of(body: nn.Module) -> list[tuple[object, int]]:
    """Return every attribute of every module, and how often each tensor was written to."""
    return [
        (value, _times_written(value))
        for module in body.modules()
        for part in (
            vars(module).values(),
            module.buffers(recurse=False),
            module.parameters(recurse=False),
        )
        for value in part
    ]


def _times_written(value: object) -> int:
    return value._version if isinstance(value, Tensor) and not value.is_inference() else 0


def _is_unchanged(body: nn.Module, before: list[tuple[object, int]]) -> bool:
    """Whether all attributes are the objects they were, and no tensor was written to."""
    now = _state_of(body)
    return len(now) == len(before) and all(
        one is other and times == last
        for (one, times), (other, last) in zip(now, before, strict=True)
    )


def count_weights(body: nn.Module) -> int:
    """Return how many weights every row meets: all but tables, of which it takes one line."""
    tables = [each for each in body.modules() if isinstance(each, nn.Embedding)]
    looked_up = sum(each.weight.numel() for each in tables)
    return max(sum(each.numel() for each in body.parameters()) - looked_up, 1)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a batch was too large for the memory there is."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(
        words in str(error).lower() for words in _OUT_OF_MEMORY
    )


def halve(batches: Sequence[Sequence[T]], times: int) -> Iterator[Sequence[T]]:
    """Yield batches cut in half `times` times, in the same order."""
    for batch in batches:
        parts = [batch]
        for _ in range(times):
            middles = [(part, (len(part) + 1) // 2) for part in parts]
            halves = [half for part, at in middles for half in (part[:at], part[at:])]
            parts = [half for half in halves if len(half)]
        yield from parts


def halve_where_memory_ends(
    batches: Sequence[Sequence[T]],
    attempt: Callable[[list[list[T]]], R],
    note: Callable[[str], None],
    least: str,
    remedy: str,
) -> R:
    """Run the batches of a unit; where memory ends, again in smaller ones.

    What another unit has met must not change the bits of this one. `least` names what the
    smallest batch is, and `remedy` which options use less memory.
    """
    halvings = 0
    while True:
        parts = [list(part) for part in halve(batches, halvings)]
        try:
            return attempt(parts)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            if max(map(len, parts)) == 1:
                raise IsoscopeError(
                    f"memory ran out with {least}",
                    hint=f"{remedy}; the same command resumes from the last unit that was "
                    "written",
                    slug="out-of-memory",
                ) from error
            halvings += 1
            note(f"memory ran out: batches were cut in {2**halvings}")


class _Depth(threading.local):
    """How many blocks with a fixed number of threads this thread is in."""

    value = 0


_depth = _Depth()
_counting = threading.Lock()
_blocks = 0  # of all threads
_before = 1  # the number when the first of them began


@contextmanager
def threads(number: int) -> Generator[None]:
    """Compute with a fixed number of torch threads, and one of NumPy, until the block ends.

    With another number sums differ in their last bits. torch has a number for each thread,
    and threads that are new start with the last one that any thread set: calls that overlap
    must not take each other's number for the one to put back.
    """
    global _blocks, _before
    with _counting:
        outside = torch.get_num_threads()
        if not _blocks:
            _before = outside
        _blocks += 1
    if not _depth.value:
        outside = _before
    _depth.value += 1
    torch.set_num_threads(number)
    try:
        with one_blas_thread():
            yield
    finally:
        _depth.value -= 1
        with _counting:
            _blocks -= 1
            torch.set_num_threads(outside)

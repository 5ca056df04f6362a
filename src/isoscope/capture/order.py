"""Batches that run side by side are heard at each site in the order of the corpus."""

from collections.abc import Generator
from contextlib import contextmanager
from threading import Condition


class StoppedError(Exception):
    """Another batch has failed, and this one is not needed any more."""


class Order:
    """Lets a batch be heard at a site once the batch before it has been heard there.

    Sums then do not depend on which thread is faster. A batch waits for earlier ones only,
    so that the first of those under way never waits.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._begun = 0
        self._passed: dict[int, set[str]] = {}  # sites, by batch under way
        self._stopped = False

    def begin(self) -> int:
        """Return the number of the next batch."""
        with self._changed:
            number, self._begun = self._begun, self._begun + 1
            self._passed[number] = set()
            return number

    def end(self, number: int) -> None:
        """A batch was heard at all of its sites."""
        with self._changed:
            self._passed.pop(number, None)
            self._changed.notify_all()

    def stop(self) -> None:
        """Let all batches fail that come to a site after this."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    @contextmanager
    def turn(self, number: int, site: str) -> Generator[None]:
        """Wait until the batch before this one has been heard at a site."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._is_free(number - 1, site))
            if self._stopped:
                raise StoppedError
        yield
        with self._changed:
            self._passed[number].add(site)
            self._changed.notify_all()

    def _is_free(self, before: int, site: str) -> bool:
        return before not in self._passed or site in self._passed[before]

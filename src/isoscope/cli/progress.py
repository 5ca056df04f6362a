"""A line on the terminal while long work goes on: rows, rows a second, time left."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

Tick = Callable[[int, int | None], None]  # rows done, rows in all where that is known
PATIENCE = 0.5  # seconds; what is done by then needs no line


@contextmanager
def progress(*, quiet: bool = False, noun: str = "rows") -> Generator[Tick | None]:
    """A function to call as rows are done, or None where nobody watches."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    bar = Bar(noun)
    try:
        yield bar.tick
    finally:
        bar.close()


class Bar:
    """A bar on stderr that appears when the work turns out to be long."""

    def __init__(self, noun: str = "rows") -> None:
        self.noun = noun
        self.first = self.start = monotonic()
        self.seen = 0
        self.live: Progress | None = None

    def tick(self, done: int, total: int | None) -> None:
        """Show that so many rows are done."""
        now = monotonic()
        if done < self.seen or not done:  # a second pass begins, or the first
            self.start = now
        self.seen = done
        if self.live is None:
            if now - self.first < PATIENCE:
                return
            self.live = self._opened()
        text = words(done, total, now - self.start, self.noun)
        self.live.update(self.live.task_ids[0], completed=done, total=total, words=text)

    def close(self) -> None:
        """Take the bar away; what it said is of no use afterwards."""
        if self.live is not None:
            self.live.stop()

    def _opened(self) -> "Progress":
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        columns = BarColumn(bar_width=30), TextColumn("{task.fields[words]}", markup=False)
        live = Progress(*columns, console=Console(stderr=True), transient=True)
        live.add_task("", total=None, words="")
        live.start()
        return live


def words(done: int, total: int | None, seconds: float, noun: str = "rows") -> str:
    """How far it is, how fast it goes, how long it will take.

    >>> words(250_000, 1_000_000, 2.0)
    '250,000 of 1,000,000 rows, 125,000 rows/s, 6 s left'
    """
    if total is not None and done >= total:
        return f"{done:,} {noun} read, computing"
    rate = done / seconds if seconds > 0 else 0.0
    parts = [f"{done:,} {noun}" if total is None else f"{done:,} of {total:,} {noun}"]
    if rate:
        parts.append(f"{rate:,.0f} {noun}/s" if rate >= 10 else f"{rate:.1f} {noun}/s")
    if rate and total is not None:
        parts.append(f"{_time((total - done) / rate)} left")
    return ", ".join(parts)


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"

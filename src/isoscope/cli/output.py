"""What commands print: a table or one of the formats, remarks beside it, and progress."""

import sys
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from threading import Lock, Timer
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from pathlib import Path

    from rich.progress import Progress

    from isoscope.display import Results
    from isoscope.display.table import Table
    from isoscope.engine import Status

T = TypeVar("T")
PATIENCE = 0.5  # seconds; what is done by then needs no progress bar


def show(results: "Results[T]", style: str, *, quiet: bool = False) -> None:
    """Print results to stdout, as tables or in a format; what that lacks goes to stderr."""
    if style:
        sys.stdout.write(getattr(results, f"to_{style}")())
    else:
        apart = ""
        for table in results.overview:
            sys.stdout.write(apart)
            show_table(table)
            # On a terminal a table without notes ends with an empty line already.
            notes = (*table.notes, *table.warnings, *table.left_out)
            apart = "\n" if notes or not sys.stdout.isatty() else ""
    sys.stdout.flush()
    for text in results.notes(style):
        note(text, quiet=quiet)


def show_table(table: "Table") -> None:
    """Print a table to stdout, folded to its width where that is a terminal."""
    if sys.stdout.isatty():
        from rich.console import Console

        from isoscope.display.formats import print_table

        print_table(table, Console())
    else:
        from isoscope.display.formats import as_text

        sys.stdout.write(as_text(table))


def note(text: str, *, quiet: bool) -> None:
    """Print a remark to stderr, beside the data; where that is full, the data still count."""
    if not quiet:
        from isoscope.escape import plain

        with suppress(OSError):
            # Named, as click would go around what a progress bar puts in its place.
            click.echo(plain(text), file=sys.stderr)


def show_file(path: "Path", facts: dict[str, str | int], *, as_json: bool) -> None:
    """Print the path of a file that was written, or a JSON object with facts about it."""
    from json import dumps

    from isoscope.escape import plain

    click.echo(dumps(facts) if as_json else plain(str(path)))


@contextmanager
def progress(
    *, quiet: bool = False, noun: str = "rows", first: str = "opening"
) -> "Generator[Bar | None]":
    """Yield a bar to report to as rows are done, or None where stderr is no terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    with closing(Bar(noun, first)) as bar:
        yield bar


class Bar:
    """A progress bar on stderr that appears when the work turns out to be long.

    Until there is any progress it says what is done first.
    """

    def __init__(self, noun: str = "rows", first: str = "opening") -> None:
        self.noun = noun
        self.first = self.start = monotonic()
        self.seen = self.earlier = 0
        self.idle = True  # whether no worker has begun yet
        self.details = ""  # units, failures, and what workers do
        self.live: Progress | None = None
        self._lock = Lock()
        self._timer = Timer(max(0.0, PATIENCE), self._show, [0, None, first])
        self._timer.daemon = True
        self._timer.start()

    def tick(self, done: int, total: int | None) -> None:
        """Show how many rows are done."""
        self._timer.cancel()
        now = monotonic()
        if done < self.seen or not done:  # a second pass begins, or the first
            self.start = now
        self.seen = done
        if self.live is not None or now - self.first >= PATIENCE:
            self._show(done, total, self._words(done, total))

    def watch(self, status: "Status") -> None:
        """Show what is known of units and workers, with the next number of rows or at once."""
        before, self.details = self.details, status.details
        self.earlier = status.earlier
        if status.workers and self.idle:  # a cluster takes seconds to start
            self.start, self.idle = monotonic(), False
        if self.live is not None and self.details != before and self.seen:
            self._show(self.seen, status.total, self._words(self.seen, status.total))

    def _words(self, done: int, total: int | None) -> str:
        return words(done, total, monotonic() - self.start, self.noun, self.earlier)

    def _show(self, done: int, total: int | None, text: str) -> None:
        with self._lock:
            if self.live is None:
                self.live = self._open()
            self.live.update(
                self.live.task_ids[0],
                completed=done,
                total=total,
                words=text + self.details,
            )

    def close(self) -> None:
        """Remove the bar; what it showed is of no use afterwards."""
        self._timer.cancel()
        self._timer.join()
        if self.live is not None:
            self.live.stop()

    def _open(self) -> "Progress":
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        columns = BarColumn(bar_width=30), TextColumn("{task.fields[words]}", markup=False)
        live = Progress(*columns, console=Console(stderr=True), transient=True)
        live.add_task("", total=None, words="")
        live.start()
        return live


def words(
    done: int, total: int | None, seconds: float, noun: str = "rows", earlier: int = 0
) -> str:
    """Return how far the work is, how fast it goes, and how long it will take.

    What an earlier run has done says nothing of the speed of this one.

    >>> words(250_000, 1_000_000, 2.0)
    '250,000 of 1,000,000 rows, 125,000 rows/s, 6 s left'
    >>> words(2, 6, 200.0, "cells")
    '2 of 6 cells, 1 min 40 s each, 6 min 40 s left'
    """
    from isoscope.engine.time import as_time

    if total is not None and done >= total:
        return f"{done:,} {noun} {'read' if noun == 'rows' else 'done'}, computing"
    rate = (done - earlier) / seconds if seconds > 0 else 0.0
    parts = [f"{done:,} {noun}" if total is None else f"{done:,} of {total:,} {noun}"]
    if rate >= 0.5:
        parts.append(f"{rate:,.0f} {noun}/s" if rate >= 10 else f"{rate:.1f} {noun}/s")
    elif rate:
        parts.append(f"{as_time(1 / rate)} each")
    if rate and total is not None:
        parts.append(f"{as_time((total - done) / rate)} left")
    return ", ".join(parts)

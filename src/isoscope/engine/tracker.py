"""Progress over all units and workers of a run: it never goes back, whoever reports."""

from collections.abc import Callable
from dataclasses import field
from threading import RLock

from isoscope.dataclass import dataclass

NAMED = 8  # workers that are shown with what they do


@dataclass(frozen=True)
class Doing:
    """What one worker does."""

    worker: str  # a number, or where it runs
    unit: str
    done: int = 0
    size: int | None = None  # where it is known

    @property
    def text(self) -> str:
        """The same in words."""
        known = self.size and self.done
        share = f", {min(100 * self.done // self.size, 100)} %" if known and self.size else ""
        return f"{self.worker}: {self.unit}{share}"


@dataclass(frozen=True)
class Status:
    """How far a run is."""

    done: int  # rows, tokens or whatever the command counts
    total: int | None
    units_done: int
    units: int
    failed: int = 0  # tries that failed
    given_up: int = 0  # units that are not tried again
    workers: tuple[Doing, ...] = ()
    earlier: int = 0  # of what is done, by an earlier run

    @property
    def details(self) -> str:
        """Units and failures, to stand behind what is done; and below it who does what.

        >>> two = (Doing("worker 1", "unit 7", 350, 1000), Doing("worker 2", "unit 8", 20))
        >>> print(Status(7000, 40_000, 7, 40, failed=3, given_up=1, workers=two).details)
        , 7 of 40 units, 3 tries failed, 1 unit given up
        worker 1: unit 7, 35 %; worker 2: unit 8
        """
        parts = [f"{self.units_done:,} of {self.units:,} units"] if self.units > 1 else []
        if self.failed:
            parts.append(f"{self.failed:,} {'try' if self.failed == 1 else 'tries'} failed")
        if self.given_up:
            parts.append(f"{self.given_up:,} unit{'s' * (self.given_up > 1)} given up")
        doing = [each.text for each in self.workers]
        if len(doing) > NAMED:
            doing[NAMED:] = [f"{len(doing) - NAMED} more"]
        below = "\n" + "; ".join(doing) if doing else ""
        return "".join(f", {part}" for part in parts) + below


@dataclass(frozen=True)
class Notify:
    """Callbacks for progress, for who does what, and for remarks about the work."""

    progress: Callable[[int, int | None], None] | None = None
    say: Callable[[str], None] | None = None
    status: Callable[[Status], None] | None = None

    def tell(self, text: str) -> None:
        """Pass on a remark, where there is a callback for it."""
        if self.say is not None:
            self.say(text)


@dataclass
class Tracker:
    """Adds up what is done, now or by an earlier run, and what is under way."""

    notify: Notify
    total: int | None = None
    note: Callable[[str], None] = lambda _: None
    units: int = 0
    failed: int = 0
    given_up: int = 0
    _units_done: int = 0
    _earlier: int = 0
    _done: int = 0
    _under_way: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    _doing: dict[str, tuple[int, int, int | None]] = field(
        default_factory=dict[str, tuple[int, int, int | None]]
    )
    _shown: int = -1
    _lock: RLock = field(default_factory=RLock)

    def at(
        self, stage: int, unit: int, done: int, worker: str = "", size: int | None = None
    ) -> None:
        """Report how much of a unit is done, and by which worker."""
        with self._lock:
            self._under_way[stage, unit] = done
            if worker:
                self._doing[worker] = stage, unit, size
            self.show()

    def finish(self, stage: int, unit: int, size: int | None) -> None:
        """Report a unit that is done."""
        with self._lock:
            under_way = self._under_way.pop((stage, unit), 0)
            self._done += under_way if size is None else size
            self._units_done += 1
            self._leave(stage, unit)
            self.show()

    def find(self, stage: int, unit: int, size: int | None) -> None:
        """Report a unit that an earlier run has done."""
        with self._lock:
            self._earlier += size or 0
            self.finish(stage, unit, size)

    def fail(self, stage: int, unit: int, *, again: bool) -> None:
        """Report a unit that has failed, and whether it is tried again."""
        with self._lock:
            self._under_way.pop((stage, unit), None)
            self.failed += 1
            self.given_up += not again
            self._leave(stage, unit)
            self.show()

    def lose(self, size: int | None) -> None:
        """Take back a unit that was done: its result was damaged."""
        with self._lock:
            self._done -= size or 0
            self._units_done -= 1

    def leave(self, worker: str) -> None:
        """Report that a worker is gone, or has nothing to do."""
        with self._lock:
            if self._doing.pop(worker, None) is not None:
                self.show()

    def _leave(self, stage: int, unit: int) -> None:
        for worker, doing in list(self._doing.items()):
            if doing[:2] == (stage, unit):
                del self._doing[worker]

    def show(self) -> None:
        """Report how much is done in all; progress only where it is more than before."""
        with self._lock:
            done = self._done + sum(self._under_way.values())
            shown = max(done, self._shown)
            if self.notify.status is not None:
                self.notify.status(self._status(shown))
            if self.notify.progress is not None and done > self._shown:
                self.notify.progress(done, self.total)
            self._shown = shown

    def _status(self, done: int) -> Status:
        doing = tuple(
            Doing(worker, f"unit {unit}", self._under_way.get((stage, unit), 0), size)
            for worker, (stage, unit, size) in sorted(self._doing.items())
        )
        return Status(
            done,
            self.total,
            self._units_done,
            self.units,
            self.failed,
            self.given_up,
            doing,
            self._earlier,
        )

"""The engine that does units one after the other, in this process."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from isoscope.engine.base import Job, Keeper, Tracker, UnitTicks
from isoscope.engine.heap import trim
from isoscope.engine.scratch import Scratch
from isoscope.store.summaries import State


class Here:
    """No other process: takes arrays, modules and streams as well."""

    takes_live = True

    @contextmanager
    def start(self, job: Job) -> Generator["HereSession"]:
        """Begin with a job."""
        yield HereSession(job)


@dataclass
class HereSession:
    """The worker that made the plan does the units too."""

    job: Job

    def run(
        self,
        stage: int,
        units: Sequence[object],
        keeper: Keeper,
        tracker: Tracker,
        sizes: Callable[[int], int | None],
        before: State | None,
    ) -> None:
        """Do the units that are missing; what is done is written even if one fails."""
        worker = self.job.worker
        worker.enter(self.job.plan, stage, before)
        try:
            for number in keeper.missing():
                scratch = Scratch(self.job.scratch, stage, number)
                result = worker.run(units[number], scratch, UnitTicks(tracker, stage, number))
                keeper.add(number, result)
                if scratch.used:
                    keeper.flush()  # first on the disk, then out of the scratch
                    scratch.clear()
                tracker.finish(stage, number, sizes(number))
                del result
                trim()
        except BaseException:
            keeper.flush()
            raise

"""Execution: where the work is done and where the run is written; never changes a number."""

from typing import Annotated

from isoscope.study.option import Part, about


class Place(Part, frozen=True, kw_only=True):
    """Engine and workers: all there is to say for commands that write no run folder."""

    engine: Annotated[
        str, about("Where units run: here, or pool for several processes.", "ENGINE")
    ] = "here"
    workers: Annotated[int, about("Processes of the engine.", "N", least=1)] = 1


class Execution(Place, frozen=True, kw_only=True):
    """Engine, workers, and the folder of the run."""

    output: Annotated[
        str | None,
        about(
            "Save a run folder; an unfinished one is resumed.",
            "RUN",
            flag="-o/--output",
            path=True,
        ),
    ] = None
    overwrite: Annotated[bool, about("Replace the run folder if there is one.")] = False

"""Where the units of a run are done: in this process, or in several, here or elsewhere."""

from isoscope.engine.base import Engine, Job, Scratch, Ticks
from isoscope.engine.choose import ENGINES, Where, engine_for
from isoscope.engine.tracker import Notify, Status, Tracker

__all__ = [
    "ENGINES",
    "Engine",
    "Job",
    "Notify",
    "Scratch",
    "Status",
    "Ticks",
    "Tracker",
    "Where",
    "engine_for",
]

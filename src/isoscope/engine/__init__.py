"""Where the units of a run are done: in this process, or in several."""

from isoscope.engine.base import (
    ENGINES,
    Engine,
    Job,
    Notify,
    Scratch,
    Ticks,
    Tracker,
    engine_for,
)

__all__ = ["ENGINES", "Engine", "Job", "Notify", "Scratch", "Ticks", "Tracker", "engine_for"]

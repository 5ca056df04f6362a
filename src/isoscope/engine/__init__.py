"""Where the units of a run are done."""

from isoscope.engine.here import here

__all__ = ["here"]

"""A run on disk: one folder, written whole or not at all."""

from isoscope.store.origin import Origin, mergeable, new_origin
from isoscope.store.run import Run, check_target, load, open_run, save
from isoscope.store.schema import SCHEMA

__all__ = [
    "SCHEMA",
    "Origin",
    "Run",
    "check_target",
    "load",
    "mergeable",
    "new_origin",
    "open_run",
    "save",
]

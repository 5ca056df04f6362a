"""Python's garbage collector, which rests while a command loads what it needs.

Modules stay until the end; the collector would go through them after every 700 new objects.
"""

import gc

_USUAL = gc.get_threshold()
_OBJECTS = 500_000  # new ones until garbage is looked for; a report makes 200,000


def rest() -> None:
    """Let the collector wait for many more objects than usual."""
    gc.set_threshold(_OBJECTS)


def resume() -> None:
    """Let it work as usual, if it rests: what models leave behind may be large."""
    if gc.get_threshold()[0] == _OBJECTS:
        gc.freeze()
        gc.unfreeze()  # what there is counts as old, without having been gone through
        gc.set_threshold(*_USUAL)

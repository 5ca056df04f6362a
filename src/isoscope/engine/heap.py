"""Handing memory that is free back to the system between units."""

import ctypes


def trim() -> None:
    """Give back what the C library keeps; where it cannot, nothing happens.

    glibc keeps the freed blocks of a unit among those still in use: the peak of a survey
    was a fifth higher than what it ever held at once.
    """
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        return

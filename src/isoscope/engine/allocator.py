"""Memory that is free goes back to the system: at once for large blocks, or between units."""

import ctypes
import os
from contextlib import suppress

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # of glibc's mallopt
LARGE = 4_000_000  # bytes


def give_back(large: int = LARGE, kept: int = 0) -> None:
    """Keep the peak of memory near what is in use; without mallopt, nothing happens.

    All threads share one heap: left to itself glibc keeps freed matrices of one thread for
    that thread, a fifth more memory at the peak of a large measurement. Blocks of at least
    `large` bytes go back as soon as they are freed, and so does the end of the heap once
    more than `kept` bytes of it are free.

    Forward passes free and ask for the same blocks all the time. Had the system to clear
    every page of them anew, a fifth of a survey would be that: so some of the heap is kept,
    and tensors are made of huge pages where there are any.
    """
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # torch reads it when it begins
    with suppress(AttributeError, OSError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_ARENA_MAX, 1)
        mallopt(_MMAP_THRESHOLD, large)
        if kept:
            mallopt(_TRIM_THRESHOLD, kept)


def trim() -> None:
    """Give back what the C library keeps; where it cannot, nothing happens.

    glibc keeps the freed blocks of a unit among those still in use: the peak of a survey
    was a fifth higher than what it ever used at once.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)

"""Memory that is free goes back to the system: at once for large blocks, or between units."""

import ctypes
from contextlib import suppress

_MMAP_THRESHOLD, _ARENA_MAX = -3, -8  # of glibc's mallopt
LARGE = 4_000_000  # bytes


def give_back(large: int | None = LARGE) -> None:
    """Keep the peak of memory near what is in use; without mallopt, nothing happens.

    All threads share one heap. Left to itself glibc keeps freed matrices of one thread for
    that thread: a fifth more memory at the peak of a large measurement.

    Blocks of at least `large` bytes go back as soon as they are freed; with None, when the
    C library finds it worth while. Forward passes free and ask for the same large blocks
    all the time: to have every page of them cleared anew took a fifth of a survey.
    """
    with suppress(AttributeError, OSError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_ARENA_MAX, 1)
        if large is not None:
            mallopt(_MMAP_THRESHOLD, large)


def trim() -> None:
    """Give back what the C library keeps; where it cannot, nothing happens.

    glibc keeps the freed blocks of a unit among those still in use: the peak of a survey
    was a fifth higher than what it ever used at once.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)

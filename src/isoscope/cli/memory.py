"""Asking the C library to hand large freed blocks back at once."""

import ctypes

_MMAP_THRESHOLD, _ARENA_MAX = -3, -8  # of glibc's mallopt
LARGE = 4_000_000  # bytes


def give_back(large: int = LARGE) -> None:
    """Keep the peak of memory near what is in use; where mallopt is not, nothing happens.

    Blocks of at least so many bytes go back as soon as they are freed.

    Left to itself glibc keeps freed matrices of one thread for that thread: a fifth more
    memory at the peak of a large measurement.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    mallopt(_MMAP_THRESHOLD, large)
    mallopt(_ARENA_MAX, 1)

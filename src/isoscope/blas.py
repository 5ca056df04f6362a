"""One thread of linear algebra for a while, also when several calls want that at a time.

The number of threads is one of the process. Two calls that each put back what they found
would leave it at one for good, where the second began before the first ended.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock

from threadpoolctl import threadpool_limits

_lock = Lock()
_inside = 0  # calls that compute with one thread now
_before: threadpool_limits | None = None  # what the first of them found


def _forget_lock() -> None:
    """Start with a new lock in a fork: the thread that held the old one is not there."""
    global _lock
    _lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)


@contextmanager
def one_blas_thread() -> Generator[None]:
    """Compute with one thread of NumPy's linear algebra until the block ends.

    With another number sums and eigenvalues differ in their last bits. The first that comes
    in sets it, the last that goes out puts back what was there.
    """
    global _inside, _before
    with _lock:
        if not _inside:
            _before = threadpool_limits(1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside and _before is not None:
                _before.restore_original_limits()
                _before = None

"""Computing with a fixed number of threads: with another, sums differ in their last bits."""

from collections.abc import Generator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits


@contextmanager
def threads(number: int) -> Generator[None]:
    """Let torch compute with so many threads, and NumPy with one, until the block ends."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)

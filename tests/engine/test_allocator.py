"""Freed memory goes back between units, and nothing breaks where it cannot."""

import ctypes
import subprocess
import sys

import pytest

from isoscope.engine.allocator import trim

KEPT = """
import numpy as np
from isoscope.engine.allocator import trim

def resident():
    with open("/proc/self/status") as lines:
        return next(int(x.split()[1]) for x in lines if x.startswith("RssAnon"))

blocks = [np.ones(8_000) for _ in range(2_000)]  # 64 kB each: below what is mapped by itself
del blocks[:-1]  # the last one keeps the heap from shrinking by itself
before = resident()
trim()
print(before - resident())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_lies_freed_between_blocks_in_use_goes_back():
    done = subprocess.run(
        [sys.executable, "-c", KEPT], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) > 100_000  # KiB, of 128 MB


@pytest.mark.parametrize("error", [AttributeError, OSError, TypeError])
def test_a_library_without_the_call_is_left_alone(monkeypatch, error):
    def refuse(_name):
        raise error

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    trim()

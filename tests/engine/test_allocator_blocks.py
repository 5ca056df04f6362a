"""Freed memory goes back, and nothing breaks where the C library has no such call."""

import ctypes
import os
import subprocess
import sys

import pytest

from isoscope.engine.allocator import give_back

PEAK = """
import threading
import numpy as np
from isoscope.engine.allocator import give_back

def resident():
    with open("/proc/self/status") as lines:
        return next(int(x.split()[1]) for x in lines if x.startswith("RssAnon"))

give_back()
def work():
    for megabytes in (8, 12, 16, 20, 24, 28):
        np.ones(megabytes << 17)
threads = [threading.Thread(target=work) for _ in range(2)]
before = resident()
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(resident() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_large_blocks_go_back_when_they_are_freed():
    done = subprocess.run(
        [sys.executable, "-c", PEAK], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 8 * 1024  # KiB


@pytest.mark.skipif(sys.platform != "linux", reason="needs mallopt")
@pytest.mark.parametrize(
    ("how", "calls"), [((5,), [(-8, 1), (-3, 5)]), ((5, 9), [(-8, 1), (-3, 5), (-1, 9)])]
)
def test_some_of_the_heap_is_kept_where_models_run(monkeypatch, how, calls):
    made = []

    class Library:
        def mallopt(self, *call):
            made.append(call)

    monkeypatch.setattr(ctypes, "CDLL", lambda _name: Library())
    monkeypatch.setenv("THP_MEM_ALLOC_ENABLE", "0")
    give_back(*how)
    assert os.environ["THP_MEM_ALLOC_ENABLE"] == "0"  # what the user has set stays
    assert made == calls


@pytest.mark.parametrize("error", [AttributeError, OSError, TypeError])
def test_a_library_without_the_call_is_left_alone(monkeypatch, error):
    def refuse(_name):
        raise error

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    give_back()

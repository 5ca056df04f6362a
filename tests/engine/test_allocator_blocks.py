"""Freed memory goes back, and nothing breaks where the C library has no such call."""

import ctypes
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
@pytest.mark.parametrize(("large", "calls"), [(None, [(-8, 1)]), (5, [(-8, 1), (-3, 5)])])
def test_blocks_of_a_survey_stay_with_the_library(monkeypatch, large, calls):
    made = []

    class Library:
        def mallopt(self, *call):
            made.append(call)

    monkeypatch.setattr(ctypes, "CDLL", lambda _name: Library())
    give_back(large)
    assert made == calls


@pytest.mark.parametrize("error", [AttributeError, OSError, TypeError])
def test_a_library_without_the_call_is_left_alone(monkeypatch, error):
    def refuse(_name):
        raise error

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    give_back()

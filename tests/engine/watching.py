"""Watching processes and files that change by themselves."""

import time
from contextlib import suppress
from pathlib import Path


def eventually(condition, *, seconds=240):
    """Return what a condition gives once it is true; no assertion depends on the time."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError("it never came true")
        time.sleep(0.01)
    return found


def lives(pid):
    """Return whether a process runs; one that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children(pid):
    """Return the processes that a process has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(path.parent.name))
    return found


def descendants(pid):
    """Return the processes that a process has started, and those that these have started."""
    found = children(pid)
    return [*found, *(below for each in found for below in descendants(each))]

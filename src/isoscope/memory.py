"""How much memory a process may still use: the least of what machine and limits leave."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_CACHED = ("active_file ", "inactive_file ")


def free_memory() -> int:
    """Return the bytes of memory that this process may still use.

    The least of what the machine has free, what its container leaves and what `ulimit -v`
    leaves. ISOSCOPE_MEMORY, a number of bytes, replaces all of them.
    """
    bound = os.environ.get("ISOSCOPE_MEMORY")
    if bound and bound.isdigit():
        return int(bound)
    known = [*_of_machine(), *_of_container(), *_of_process()]
    if known:
        return max(min(known), 0)
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (OSError, ValueError, AttributeError):
        return 4 * 2**30


def _of_machine() -> Iterator[int]:
    with suppress(OSError, ValueError, IndexError):  # not every system has it
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                yield int(line.split()[1]) * 1024


def _of_container() -> Iterator[int]:
    with suppress(OSError, ValueError):  # "max" where there is no limit
        limit = int((_CGROUP / "memory.max").read_text())
        used = int((_CGROUP / "memory.current").read_text())
        lines = (_CGROUP / "memory.stat").read_text().splitlines()
        cached = sum(int(line.split()[1]) for line in lines if line.startswith(_CACHED))
        yield limit - used + cached  # files in the cache make room when it is needed


def _of_process() -> Iterator[int]:
    with suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            yield limit - pages * os.sysconf("SC_PAGE_SIZE")


def as_bytes(number: int) -> str:
    """Return a number of bytes for people to read.

    >>> as_bytes(5_000_000), as_bytes(3 * 2**30)
    ('4.8 MiB', '3.0 GiB')
    """
    return f"{number / 2**20:.1f} MiB" if number < 2**30 else f"{number / 2**30:.1f} GiB"

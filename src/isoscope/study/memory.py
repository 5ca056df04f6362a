"""How much memory the sites of a model need, and how much there is."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from isoscope.accumulate.bands import FREQUENCIES, POSITIONS
from isoscope.accumulate.block import sketch_rank
from isoscope.accumulate.reservoir import SIZE
from isoscope.accumulate.vocabulary import KEPT, SAMPLED, TYPES
from isoscope.hashing import GROUPS

ROW_CLASSES = 2  # that usually occur at a site: ordinary and special, or ordinary and sink


def state_bytes(widths: Iterable[int], classes: int = ROW_CLASSES) -> int:
    """Return the bytes that sites of these widths take while they are collected."""
    return sum(classes * site_bytes(width) for width in widths)


def site_bytes(d: int) -> int:
    """Return the bytes of one site and class of rows.

    Two scatters of d x d doubles, for each of 32 groups its sums and its scatter seen from
    a few directions, and the rows of the reservoir.
    """
    scatters = 2 * d * d * 8
    groups = GROUPS * d * (sketch_rank(d) * 4 * 2 + 3 * 8)  # held twice until it is settled
    return scatters + groups + SIZE * d * 4 + token_bytes(d)


def token_bytes(d: int) -> int:
    """Return the bytes of what is kept by token type, by band and of whole texts."""
    types = TYPES * (8 * d + 24)
    occurrences = SAMPLED * KEPT * (4 * d + 16)
    bands = GROUPS * (len(FREQUENCIES) + POSITIONS) * 8 * (d + 1)
    return types + occurrences + bands


def as_bytes(number: int) -> str:
    """Return a number of bytes as people say it.

    >>> as_bytes(5_000_000), as_bytes(3 * 2**30)
    ('4.8 MiB', '3.0 GiB')
    """
    if number < 2**30:
        return f"{number / 2**20:.1f} MiB"
    return f"{number / 2**30:.1f} GiB"


def available() -> int:
    """Return the bytes of memory that are free to be used."""
    bound = os.environ.get("ISOSCOPE_MEMORY")
    if bound and bound.isdigit():
        return int(bound)
    with suppress(OSError, ValueError, IndexError):  # not every system has it
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (OSError, ValueError, AttributeError):
        return 4 * 2**30

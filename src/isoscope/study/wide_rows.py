"""What wide rows need in memory: said before they are read, or left out where nobody asked.

Most measures read a covariance, whose size is the square of the width: rows of 20,000 numbers
would take 42 GiB, however few there are.
"""

from collections.abc import Iterable

from isoscope.accumulate import CentredDirections, Directions, Groups, Moments, Partitions
from isoscope.accumulate.block import sketch_rank
from isoscope.accumulate.reservoir import SIZE, Reservoir
from isoscope.accumulate.survey import Kind
from isoscope.errors import ConfigError, SourceError
from isoscope.hashing import GROUPS
from isoscope.measures import MEASURES
from isoscope.memory import as_bytes, free_memory
from isoscope.source import RowSource
from isoscope.study.lanes import IN_FLIGHT
from isoscope.study.measure_choice import Reads
from isoscope.study.reading import kinds_for

WIDEST = 16_384  # of rows whose covariance is computed without being asked for by name
# d x d numbers at once, two lanes and readings together: 12.5 were measured at d = 2,000 and
# 13.4 at d = 3,000.
_MATRICES = 14
_PART_MATRICES = 4  # more, where a second pass looks along all axes
_CELLS = (Groups, Directions, CentredDirections)  # of GROUPS x d numbers each in a lane
_SMALL = 64 << 20  # what needs less is not worth a look at the machine


def check_cut(dim: int | None, source: RowSource) -> int:
    """Return the width that is measured: that of the source, or what it is cut to."""
    if dim is not None and dim > source.width:
        raise ConfigError(
            f"cannot cut vectors of width {source.width} to {dim} numbers",
            hint=f"--truncate-dim is at most {source.width} here",
            slug="number-range",
        )
    return source.width if dim is None else dim


def fitting_measures(reads: Reads, width: int) -> tuple[tuple[str, ...], list[str]]:
    """Return the measures of rows of this width, and why others of the default set are not.

    What was chosen by name stays: `check_memory` says if it does not fit.
    """
    names = reads.names()
    if width <= WIDEST or reads.measures is not None:
        return names, []
    too_wide = [name for name in names if Moments in MEASURES[name].reads.needs]
    needed = as_bytes(_MATRICES * 8 * width * width)
    why = f"rows of width {width} need about {needed} of memory; choose with --measure, "
    why += "or cut them with --truncate-dim"
    kept = tuple(name for name in names if name not in too_wide)
    return kept, [f"{', '.join(too_wide)}: {why}"]


def needed_bytes(
    kinds: Iterable[Kind], source: RowSource, *, width: int, block: int, lanes: int
) -> int:
    """Return about how much memory the summaries of rows take at the most.

    Of 50 rows of width 200,000 this is 1.0 GiB, and 0.64 were measured.
    """
    kinds = set(kinds)
    kept = SIZE if source.rows is None else min(source.rows, SIZE)
    here = block if source.rows is None else min(source.rows, block)
    row, cell = width * source.itemsize, 8 * width * GROUPS
    # Blocks on their way and sorted, and summed by cell in float64.
    found = (IN_FLIGHT + 2 * lanes) * here * row + 3 * lanes * cell
    found += sum(kind in kinds for kind in _CELLS) * (lanes + 1) * cell
    if Groups in kinds and source.has_documents:
        found += sketch_rank(width) * (lanes + 1) * cell // 2
    if Reservoir in kinds:
        found += (lanes + 2) * kept * row
    matrices = _MATRICES * (Moments in kinds) + _PART_MATRICES * (Partitions in kinds)
    return found + matrices * 8 * width * width


def check_memory(
    kinds: Iterable[Kind], source: RowSource, width: int, block: int, lanes: int
) -> None:
    """Refuse rows so wide that their summaries do not fit into the memory there is."""
    kinds = tuple(kinds)

    def needed(some: Iterable[Kind]) -> int:
        return needed_bytes(some, source, width=width, block=block, lanes=lanes)

    need = needed(kinds)
    if need < _SMALL or need <= (free := free_memory()):
        return
    fits = needed(kinds_for(["mean-cosine"])) <= free
    fewer = "measure less with -m mean-cosine, or cut" if fits and Moments in kinds else "cut"
    hint = f"{fewer} the rows with --truncate-dim; if vectors are columns, transpose the array"
    raise SourceError(
        f"measuring rows of width {width} needs about {as_bytes(need)} of memory, "
        f"got {as_bytes(free)} free",
        hint=hint,
        slug="rows-memory",
    )

"""What a comparison is given: run folders, loaded runs, or vectors that are measured first."""

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from isoscope.comparison.side import opened

if TYPE_CHECKING:
    from isoscope.store import Run

SAME = "rows"  # the name of both sources: the n-th row of one is paired with the other's


@contextmanager
def two_runs(
    first: Any, second: Any, measures: Sequence[str] | None = None
) -> Generator[tuple["Run", "Run"]]:
    """Yield two runs; those of vectors are in a folder that is gone afterwards."""
    with TemporaryDirectory(prefix="isoscope-") as folder:
        places = Path(folder) / "a", Path(folder) / "b"
        yield _run(first, places[0], measures), _run(second, places[1], measures)


def names_of(first: Any, second: Any) -> tuple[str, str]:
    """Return what to call two things: their names, or their paths where these are alike."""
    paths = _path(first) or Path("vectors a"), _path(second) or Path("vectors b")
    names = paths[0].resolve().name, paths[1].resolve().name
    return names if names[0] != names[1] else (str(paths[0]), str(paths[1]))


def _run(given: Any, place: Path, measures: Sequence[str] | None) -> "Run":
    from isoscope.store import Run, load
    from isoscope.study.keywords import call
    from isoscope.study.rows import MeasureSpec

    path = _path(given)
    if isinstance(given, Run) or (path is not None and not path.is_file()):
        return opened(given)
    options = {"measures": measures, "name": SAME, "output": place}
    call(MeasureSpec, (given,), options)
    return load(place)


def _path(given: Any) -> Path | None:
    """Return where something is on disk; None for vectors in memory."""
    from isoscope.store import Run

    if isinstance(given, str | os.PathLike):
        return Path(given)
    return given.path if isinstance(given, Run) else None

"""The functions for vectors that are there already: measure them, and a planted collection."""

from typing import TYPE_CHECKING, Any

from isoscope.study.keywords import Progress, call, keywords
from isoscope.study.rows import MeasureSpec

if TYPE_CHECKING:
    from isoscope.report import Results
    from isoscope.types import Reading


@keywords(MeasureSpec)
def measure(*arguments: Any, **options: Any) -> "Results[Reading]":
    """Measure a collection of vectors: an array, a tensor, a column of a frame, or a path.

    Returns readings, each with a 95 % interval and its warnings. With `output` a run folder
    is written as well; an unfinished one is resumed. `document` says which document each
    row is from: a column of the file, or a sequence with one entry per row.
    """
    return call(MeasureSpec, arguments, options)


def planted(*, progress: Progress | None = None) -> "Results[Reading]":
    """Measure a generated collection: 2,000 texts of ten vectors in a planted cone."""
    import numpy as np

    rng = np.random.default_rng(0)
    documents = np.repeat(np.arange(2000), 10)
    scale = np.arange(1, 129) ** -0.5
    own = rng.standard_normal((len(documents), 128))
    shared = rng.standard_normal((2000, 128))[documents]
    cone = np.full(128, 0.12)
    rows = (0.8 * own + 0.6 * shared) * scale + cone
    return measure(
        rows.astype(np.float32),
        document=documents,
        name="planted-cone",
        all=True,
        progress=progress,
    )

"""The nouns that every folder shares: chunk, document, reading, change, curves, note."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoscope.dataclass import dataclass

Array = NDArray[Any]

# Rows of a model fall into four disjoint classes; a variant is some of them.
CLASSES = ("ordinary", "special", "sink", "special-sink")
VARIANTS = {
    "all": CLASSES,
    "no-special": ("ordinary", "sink"),
    "no-sink": ("ordinary", "special"),
}
# Measures that are biased by the number of rows or documents, and their debiased twins.
DEBIASED_TWINS = {
    "mean-cosine": "mean-cosine-cross",
    "isoscore": "isoscore-debiased",
    "effective-rank": "effective-rank-debiased",
    "mean-share": "mean-share-debiased",
}
# The causes of a mean cosine, in the order in which they are shown. Shares of the first two
# are of the mean cosine, those of the others of the mean cosine of rows of the same frequency
# and position; only these add up.
REMOVAL, DEPENDENCE = "removal", "dependence"
CAUSE_ORDER = ("sinks", "dimensions", "frequency", "position", "mean")


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive rows of one source, with whatever came along with them.

    Documents are ids, one a row, as the source gives them (strings or integers); rows of
    one document are consecutive. Without them every row is a document of its own.
    """

    rows: Array  # (n, d), float32 or float64
    source: str  # the name of the file or array
    start: int  # ordinal, in its source, of the first row
    documents: Array | None = None  # (n,)
    ids: Sequence[str] | None = None
    texts: Sequence[str] | None = None
    place: str = ""  # the file, for messages
    ordinals: Array | None = None  # (n,), where rows were dropped and `start` does not tell
    part: int = 0  # which file of a folder it is from

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class Document:
    """A text, a sequence of tokens, a sound or an image, with its name.

    Content is a string, a 1-D int64 array, a 1-D float32 array (mono) or a uint8 array
    of shape (height, width, 3), depending on the kind of the corpus.
    """

    id: str
    content: Any
    target: str | None = None  # transcript or target text, where the corpus has one
    rate: int = 0  # audio: samples per second, as stored in the file
    place: str = ""  # file and line, for messages
    label: str | None = None  # from the column of labels, where one was named


@dataclass(frozen=True, slots=True)
class Reading:
    """One measured number with its interval, and what to bear in mind when reading it."""

    run: str
    site: str
    variant: str
    group: str  # frequency band, position band, cluster; empty otherwise
    step: int | None  # of a series
    measure: str
    value: float
    low: float | None  # 95 % interval; None where there are too few documents for one
    high: float | None
    n: int
    d: int
    warnings: tuple[str, ...] = ()

    @property
    def biased(self) -> bool:
        """Whether it carries a warning of bias."""
        return any("biased" in text for text in self.warnings)


@dataclass(frozen=True, slots=True)
class Change:
    """One number of two runs side by side, and their difference with its interval."""

    site: str
    other_site: str  # the same, unless sites were matched by depth
    variant: str
    step: int | None
    measure: str
    a: float
    a_low: float | None
    a_high: float | None
    b: float
    b_low: float | None
    b_high: float | None
    difference: float  # b - a
    low: float | None  # 95 % interval, not corrected for the number of rows
    high: float | None
    paired: bool  # by document group; else the two are taken as independent
    chance: float | None  # p-value after Holm's correction over all rows
    effect: float  # the difference over the scale
    scale: float  # of the measure: the larger of the two values, or 1 if it runs from 0 to 1
    verdict: str  # changed, negligible, within noise, same, or no interval
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """The outcome of one rule of a check at one site."""

    rule: str
    run: str
    site: str
    variant: str
    measure: str
    state: str  # holds, warning, breached, or could not run
    message: str
    value: float | None = None
    low: float | None = None  # 95 % interval of the value
    high: float | None = None
    limit: float | None = None  # what the value is compared with
    baseline: float | None = None  # where the limit is a multiple of it
    margin: float | None = None  # value - limit
    margin_low: float | None = None  # 95 % interval; where it holds 0 a breach is a warning
    margin_high: float | None = None


@dataclass(frozen=True, slots=True)
class Curve:
    """What a page draws of one site; each kind of curve is a class of its own.

    Arrays hold numbers. Words are in strings and tuples, where a page finds and escapes them.
    """

    site: str
    variant: str


@dataclass(frozen=True, slots=True, eq=False)
class SpectrumCurve(Curve):
    """Eigenvalues of the covariance over their average, at some ranks."""

    rank: Array
    value: Array
    isotropic: Array  # of an isotropic cloud with as many effective rows
    rows: float  # effective ones


@dataclass(frozen=True, slots=True, eq=False)
class DimensionScores(Curve):
    """The largest outlier score within each group of neighbouring dimensions."""

    first: Array  # dimension that a group begins with
    end: Array  # and the one after its last
    largest: Array  # dimension with the largest score of the group
    score: Array  # mean square over the average of all dimensions


@dataclass(frozen=True, slots=True)
class SinkShare(Curve):
    """How much of the variance goes when sinks are excluded."""

    share: float
    rows: int  # that are sinks
    n: int  # rows in all
    documents: int


def scale_of(cause: str) -> str:
    """Return what the shares of a cause are shares of."""
    return REMOVAL if cause in ("sinks", "dimensions") else DEPENDENCE


@dataclass(frozen=True, slots=True)
class CauseShare:
    """How much of the likeness of rows at a site is owed to one cause."""

    cause: str
    share: float
    low: float | None  # 95 % interval
    high: float | None
    detail: str  # a sentence
    named: bool  # whether the sentence names dimensions, sinks or bands
    first: float | None = None  # before the other cause, by dependence
    last: float | None = None  # after it
    falls_to: float | None = None  # mean cosine with the named dimensions zeroed

    @property
    def scale(self) -> str:
        """What the share is a share of."""
        return scale_of(self.cause)


@dataclass(frozen=True, slots=True)
class CauseShares(Curve):
    """The causes of the mean cosine of a site, in a fixed order."""

    cosine: float
    causes: tuple[CauseShare, ...]
    warnings: tuple[str, ...] = ()  # causes that cannot be determined, and why


@dataclass(frozen=True, slots=True, eq=False)
class MatrixCells(Curve):
    """Rows of a matrix along its first two singular vectors, counted in cells."""

    x: Array
    y: Array
    rows: Array  # number of rows in each cell
    band: Array  # index into `bands`
    bands: tuple[str, ...]  # how often tokens were seen
    of: int  # rows of the whole matrix


@dataclass(frozen=True, slots=True, eq=False)
class HeadCurve(Curve):
    """One measure of an attention head along positions, over documents, or over steps."""

    measure: str
    along: str  # "positions", "documents" or "steps"
    at: tuple[str, ...]  # what stands at the axis
    value: Array
    group: str = ""
    low: Array | None = None  # NaN where there is none
    high: Array | None = None


@dataclass(frozen=True, slots=True)
class SweepWeight:
    """One weight of a sweep: how the task went, and the difference to weight 0."""

    weight: float
    mean: float
    sd: float | None
    seeds: int
    value: float | None = None  # difference; None for weight 0 itself
    low: float | None = None  # 95 % interval
    high: float | None = None
    p: float | None = None  # after Holm's correction


@dataclass(frozen=True, slots=True)
class SweepCell:
    """One measure at one site after the last step of a cell, or before fine-tuning."""

    measure: str
    site: str
    weight: float
    seed: int | None  # None before fine-tuning
    geometry: float
    metric: float | None  # of the task; None before fine-tuning


@dataclass(frozen=True, slots=True)
class SweepGrid(Curve):
    """A sweep: its task, its weights, and the geometry of every cell."""

    task: str
    metric: str
    penalty: str
    baseline: float  # the metric of knowing nothing
    learnt: bool | None  # None where one seed cannot tell
    weights: tuple[SweepWeight, ...]
    cells: tuple[SweepCell, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """What a reader should know of a measure: its formula, its source, when it misleads."""

    name: str
    title: str
    formula: str
    cite: str
    misleads: str


def as_rows(rows: Any) -> Array:
    """Return rows as a float32 or float64 array, narrower types widened to float32."""
    array = np.asarray(rows)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype in (np.float32, np.float64):
        return array
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        return array.astype(np.float64)
    wide = array.dtype.kind in "iu" and array.dtype.itemsize > 2  # float32 would round them
    return array.astype(np.float64 if wide else np.float32)

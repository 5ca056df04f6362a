"""The nouns that every folder shares: chunk, reading, change, outcome, curve, note."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Rows of a model fall into four disjoint classes; a variant is some of them.
CLASSES = ("ordinary", "special", "sink", "special-sink")
VARIANTS = {
    "all": CLASSES,
    "no-special": ("ordinary", "sink"),
    "no-sink": ("ordinary", "special"),
}


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive rows of one source, with whatever came along with them.

    Documents are ids, one a row, as the source gives them (strings or integers); rows of
    one document are consecutive. Without them every row is a document of its own.
    """

    rows: Array  # (n, d), float32 or float64
    source: str  # the name that ids of rows without a document are built from
    start: int  # ordinal, in its source, of the first row
    documents: Array | None = None  # (n,)
    ids: Sequence[str] | None = None
    texts: Sequence[str] | None = None
    place: str = ""  # the file, for messages
    ordinals: Array | None = None  # (n,), where rows were dropped and `start` does not tell

    def __len__(self) -> int:
        return len(self.rows)


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
    verdict: str  # changed, within noise, same, or no interval
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one rule of a check at one site."""

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
    baseline: float | None = None  # where the limit is so many times it
    margin: float | None = None  # value - limit
    margin_low: float | None = None  # 95 % interval; where it holds 0 a breach is a warning
    margin_high: float | None = None


@dataclass(frozen=True, slots=True)
class Curve:
    """A named set of arrays at a site: a spectrum, a heat map, a histogram."""

    site: str
    variant: str
    name: str
    arrays: dict[str, Array] = field(default_factory=dict[str, Array])


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

"""One dimension as a classifier (Rudman): how well does one number distinguish two labels?"""

from collections.abc import Sequence
from math import sqrt

import numpy as np

from isoscope.dataclass import dataclass
from isoscope.display import Record
from isoscope.errors import ConfigError, RowError, TooFewRowsError, UndefinedError
from isoscope.measures.interval import quantile
from isoscope.types import Array, as_rows

LEAST = 8  # rows of each label: half of them to learn from, half to be tried on
GRID = np.linspace(-50.0, 50.0, 201)  # added to the mean, in the released code
_CELLS = 2**22  # numbers sorted at once
Label = bool | int | float | str
Search = tuple[int, float, bool, int]  # dimension, threshold, whether above is True, rows right


@dataclass(frozen=True)
class OneDimension(Record):
    """The dimension and threshold that distinguish two labels best on the training rows.

    The label of a row is `above` where its number is greater than the threshold, else `below`.
    """

    dimension: int
    threshold: float
    above: Label
    below: Label
    train_accuracy: float
    accuracy: float  # on rows it was not chosen on
    low: float  # 95 % interval (Wilson), rows taken as independent
    high: float
    majority: float  # of the test rows: what always giving one label would reach
    n_train: int
    n_test: int
    d: int
    as_published: bool

    def predict(self, rows: Array) -> Array:
        """Return the label of each row."""
        up = np.asarray(rows)[:, self.dimension] > self.threshold
        return np.where(up, self.above, self.below)


def best_dimension(
    rows: Array,
    labels: Sequence[Label] | Array,
    *,
    test: float = 0.5,
    seed: int = 0,
    as_published: bool = False,
) -> OneDimension:
    """Return the one-dimension classifier of two labels, and its accuracy on unseen rows.

    Every dimension, every threshold between two neighbouring values and both directions are
    tried on the training rows, exactly. `as_published` takes the dimension of largest
    variance and looks for a threshold at its mean plus -50, -49.5 … 50, as the released
    code does. Rows of each label are split by the seed.
    """
    array, marks, names = _check(rows, labels, test)
    train, unseen = _split(marks, test, seed)
    search = published_search if as_published else best_threshold
    dimension, threshold, up, right = search(array[train], marks[train])
    guess = (array[unseen, dimension] > threshold) == up
    accuracy = float((guess == marks[unseen]).mean())
    low, high = _wilson(accuracy, len(unseen))
    share = float(marks[unseen].mean())
    above, below = (names[1], names[0]) if up else (names[0], names[1])
    return OneDimension(
        dimension=dimension,
        threshold=threshold,
        above=above,
        below=below,
        train_accuracy=right / len(train),
        accuracy=accuracy,
        low=low,
        high=high,
        majority=max(share, 1 - share),
        n_train=len(train),
        n_test=len(unseen),
        d=array.shape[1],
        as_published=as_published,
    )


def best_threshold(rows: Array, marks: Array) -> Search:
    """Return (dimension, threshold, whether above is True, rows right), the best of all.

    Sorting a dimension puts every threshold in a row: what is right above and below each
    follows from one cumulative sum. Of equals the first dimension and lowest threshold win.
    """
    n, d = rows.shape
    best = (0, -np.inf, True, -1)
    step = max(1, _CELLS // n)
    for start in range(0, d, step):
        found = _best_of(rows[:, start : start + step], marks)
        if found[3] > best[3]:
            best = (found[0] + start, *found[1:])
    return best


def published_search(rows: Array, marks: Array) -> Search:
    """Return the same of the dimension of largest variance, over the released grid."""
    dimension = int(np.argmax(rows.var(axis=0)))
    values = rows[:, dimension].astype(np.float64)
    best = (dimension, -np.inf, True, -1)
    for threshold in values.mean() + GRID:
        right = int(((values > threshold) == marks).sum())
        for up, count in ((True, right), (False, len(marks) - right)):
            if count > best[3]:
                best = (dimension, float(threshold), up, count)
    return best


def _best_of(rows: Array, marks: Array) -> Search:
    order = np.argsort(rows, axis=0, kind="stable")
    values = np.take_along_axis(rows, order, axis=0)
    ones = np.cumsum(marks[order], axis=0)  # True among the i + 1 smallest
    n, whole = len(marks), int(marks.sum())
    smaller = np.arange(1, n + 1)[:, None]
    up = (smaller - ones) + (whole - ones)  # False below, True above
    cuts = np.ones_like(up, dtype=bool)
    cuts[:-1] = values[1:] > values[:-1]  # there is no threshold between equals
    right = np.where(cuts, np.maximum(up, n - up), -1)
    rank, dimension = (
        int(i) for i in np.unravel_index(np.argmax(right.T), right.T.shape)[::-1]
    )
    is_up = bool(up[rank, dimension] >= n - up[rank, dimension])
    low = float(values[rank, dimension])
    high = float(values[rank + 1, dimension]) if rank + 1 < n else low
    middle = low + (high - low) / 2
    threshold = middle if low <= middle < high else low
    return dimension, threshold, is_up, int(right[rank, dimension])


def _check(
    rows: Array, labels: Sequence[Label] | Array, test: float
) -> tuple[Array, Array, list[Label]]:
    array, names = as_rows(rows), np.asarray(labels)
    if array.ndim != 2 or names.ndim != 1 or len(array) != len(names):
        raise ConfigError(
            f"expected a label for each of {len(array)} documents, got {names.shape} labels",
            hint="give one label per document, in the order of the documents",
            slug="labels-mismatch",
        )
    if not np.isfinite(array).all():
        bad = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
        raise RowError(
            f"expected numbers, got NaN or infinity in row {bad}",
            hint="drop the row, with its label",
            slug="row-not-finite",
        )
    if not 0.0 < test < 1.0:
        raise ConfigError(
            f"expected more than 0 and less than 1 as test, got {test!r}",
            hint="give the share of rows to try the classifier on, such as 0.5",
            slug="number-range",
        )
    return array, *two_labels(names)


def two_labels(labels: Sequence[Label] | Array) -> tuple[Array, list[Label]]:
    """Return which labels are the second of two, and the two; refuse more, fewer, too few."""
    names, marks = np.unique(np.asarray(labels), return_inverse=True)
    if len(names) != 2:
        raise UndefinedError(
            f"expected two different labels, got {len(names)}",
            hint="one threshold distinguishes two labels; --positive=LABEL sets one against "
            "the rest",
            slug="labels-binary",
        )
    fewest = int(np.bincount(marks).min())
    if fewest < LEAST:
        raise TooFewRowsError(
            f"expected at least {LEAST} rows of each label, got {fewest} of one",
            hint="give more labelled documents",
            slug="labels-few",
        )
    return marks.astype(bool), names.tolist()


def _split(marks: Array, test: float, seed: int) -> tuple[Array, Array]:
    """Return training and test rows, with the same share of each label."""
    rng = np.random.Generator(np.random.PCG64([seed]))
    train: list[Array] = []
    unseen: list[Array] = []
    for label in (False, True):
        order = rng.permutation(np.flatnonzero(marks == label))
        cut = min(max(1, round(len(order) * test)), len(order) - 1)
        unseen.append(order[:cut])
        train.append(order[cut:])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(unseen))


def _wilson(share: float, n: int) -> tuple[float, float]:
    z = quantile(1e9)
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, middle - reach), min(1.0, middle + reach)

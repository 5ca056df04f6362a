"""What to bear in mind when reading a number: warnings that travel with it."""

from collections.abc import Iterable, Sequence

import numpy as np

from isoscope.accumulate import (
    Adjacent,
    Copies,
    Directions,
    NamedRow,
    NamedRows,
    NamedRowsSummary,
    Norms,
    QueryScores,
    Reservoir,
    Tally,
    TallySummary,
    Vocabulary,
)
from isoscope.errors import TooFewRowsError
from isoscope.escape import plain
from isoscope.measures import MEASURES, level
from isoscope.measures.interval import LEAST_DOCUMENTS
from isoscope.measures.view import (
    Clusters,
    FarNeighbours,
    Halves,
    Masses,
    Neighbours,
    NormMoments,
    Occurrences,
    Pairs,
    RawSpectrum,
    Spectrum,
    Summaries,
    View,
)
from isoscope.measures.view.heads import ScoreSums
from isoscope.types import DEBIASED_TWINS, Reading

FEW_DOCUMENTS = 32
PER_DIMENSION = 10  # rows or documents a dimension, below which a spectrum is biased
_SPECTRAL = (Spectrum, RawSpectrum)
SHOWN_ROWS, SHOWN_TEXT = 3, 40  # rows of a warning, characters of a text
LONG_ROW = 10  # times the median norm
TAILS = (0.01, 0.001)  # shares of the longest rows
LIGHT_TAIL = 5.0  # index of a tail from which on intervals of norms cover
SHOW_TAIL = 1000  # documents or rows from which on a heavy tail of their lengths shows
UNEVEN = 0.2  # variation of lengths between documents below which no tail matters
UNEVEN_ROWS = 0.25  # the same of independent rows, whose intervals miss less often
BETWEEN = 0.1  # share of the variance of norms below which documents do not decide it
ALIKE = 0.03  # of the way from random rows to equal ones, from which on neighbours are alike
ALIKE_ERRORS = 5.0  # standard errors
UNLIKE_ERRORS = 4.0  # by which neighbours are less alike than random rows: a sequence too
_OF_NORMS = (Masses, NormMoments)
_SAMPLED = (Neighbours, FarNeighbours, Pairs, Clusters)


def about_rows(summaries: Summaries, reads: type[View], *, debiased: bool = False) -> list[str]:
    """Return the warnings that follow from how many rows and documents there were.

    `debiased`: the interval is one for the population's value, and the bias of few rows or
    documents is part of it.
    """
    tally, named = summaries.of(Tally), _named(summaries)
    # A measure over types has an interval of its own.
    warnings = (
        _types(summaries, reads) if reads.over_types else _too_few(tally, reads, debiased)
    )
    if tally.zeros and (reads is Pairs or reads.needs[0] is Directions):
        zeros = list_rows([[row] for row in named.zeros])
        warnings.append(f"{tally.zeros} zero rows dropped: they have no direction{zeros}")
    if tally.skipped:
        bad = list_rows([[row] for row in named.skipped])
        warnings.append(f"{tally.skipped} rows skipped: they were not finite numbers{bad}")
    copies = summaries.of(Copies) if Copies in summaries else None  # of heads none are counted
    if copies is not None and copies.share > 0.001:
        warnings.append(
            f"{copies.share:.1%} of the rows are copies of another row{list_rows(named.copies)}"
        )
    blind = summaries.of(QueryScores).blind if reads is ScoreSums else 0
    if blind:
        warnings.append(f"{blind} queries see no key and are excluded")
    if alike := _alike_neighbours(summaries):
        warnings.append(alike)
    if reads in _OF_NORMS:
        tail = _heavy_tail(summaries) or _unseen_tail(summaries)
        warnings += [each for each in (list_long(summaries), tail) if each]
    if reads in _SAMPLED or summaries.sampled & set(reads.needs):
        sample = summaries.of(Reservoir)
        if sample.seen > sample.count:
            warnings.append(f"from a sample of {sample.count} of {sample.seen} rows")
    return warnings


def _alike_neighbours(summaries: Summaries) -> str:
    """Return a warning where rows look like those of documents that nobody named."""
    if Adjacent not in summaries:
        return ""
    try:
        seen = summaries.of(Adjacent)
    except TooFewRowsError:
        return ""
    alike = seen.likeness >= ALIKE and seen.errors >= ALIKE_ERRORS
    if not alike and seen.errors > -UNLIKE_ERRORS:
        return ""
    how = "alike" if alike else "unlike"
    return (
        f"neighbouring rows are {how} (mean cosine {seen.near:.2f}, of random rows "
        f"{seen.far:.2f}): if they are of one document, give the option document, or the "
        "interval is too narrow"
    )


def _types(summaries: Summaries, reads: type[View]) -> list[str]:
    seen = summaries.of(Vocabulary)
    kept = len(np.unique(seen.owners)) if reads is Occurrences else len(seen.tokens)
    if kept == seen.vocabulary:
        return []
    about = "" if seen.complete else "about "
    return [f"from a sample of {kept} of {about}{seen.vocabulary} token types"]


def _too_few(tally: TallySummary, reads: type[View], debiased: bool) -> list[str]:
    warnings: list[str] = []
    n, d, documents = tally.count, tally.width, tally.documents
    if documents < LEAST_DOCUMENTS:
        kind = "rows" if tally.independent else "documents"
        warnings.append(f"no interval: {documents} {kind}, at least {LEAST_DOCUMENTS} needed")
    elif not tally.independent and documents < FEW_DOCUMENTS:
        warnings.append(f"only {documents} documents: the interval is rough")
    elif not tally.independent and n * n < FEW_DOCUMENTS * tally.pairs:
        as_many = n * n / tally.pairs
        warnings.append(
            f"documents of very unequal length count as {as_many:.0f}: the interval is rough"
        )
    spectral = reads in _SPECTRAL and not debiased
    if reads in _SPECTRAL and n < d:
        warnings.append(
            f"n < d ({n} rows, {d} dimensions): the spectrum is biased; "
            "if rows and columns are swapped, transpose"
        )
    elif spectral and n < PER_DIMENSION * d:
        warnings.append(f"n < 10 d ({n} rows, {d} dimensions): the spectrum is biased")
    elif spectral and not tally.independent and documents < PER_DIMENSION * d:
        warnings.append(
            f"documents < 10 d ({documents} documents, {d} dimensions): "
            "the spectrum may be biased however many rows there are"
        )
    if reads is Halves and documents < FEW_DOCUMENTS:
        warnings.append(f"unreliable below {FEW_DOCUMENTS} documents, got {documents}")
    return warnings


def about_bias(readings: Iterable[Reading]) -> dict[str, str]:
    """Return warnings for plain values whose debiased twin lies outside their interval."""
    by_name = {reading.measure: reading for reading in readings}
    warnings: dict[str, str] = {}
    for biased, debiased in DEBIASED_TWINS.items():
        if biased not in by_name or debiased not in by_name:
            continue
        low, high = by_name[biased].low, by_name[biased].high
        true = by_name[debiased].value
        if low is None or high is None:
            continue
        n, d = by_name[biased].n, by_name[biased].d
        # an interval ends where the measure does, which its debiased twin need not
        least, most = (level(bound, n, d) for bound in MEASURES[biased].bounds)
        if (true < low and low != least) or (true > high and high != most):
            warnings[biased] = f"biased by more than its interval: {debiased} reads {true:.4g}"
    cosine = by_name.get("mean-cosine")
    if cosine is not None and "outlier-share" in by_name:
        low, high = cosine.low, cosine.high
        if low is not None and high is not None and low <= 0 <= high:
            warnings["outlier-share"] = "the mean cosine it explains may be zero"
    return warnings


def row_name(name: str, text: str, ordinal: int) -> str:
    """Return what a person knows a row by: its id, and the beginning of its text."""
    words = plain(" ".join(text.split()))
    short = words if len(words) <= SHOWN_TEXT else f"{words[:SHOWN_TEXT].rstrip()}..."
    known = f"id {plain(name)}" if name else f"row {ordinal}"
    return f'{known} ("{short}")' if short else known


def list_rows(rows: Sequence[Sequence[NamedRow]]) -> str:
    """Return the names of the first rows, as the end of a sentence; empty without any.

    Each entry is one row, or rows that are equal, of which two are named.
    """
    shown = [
        " = ".join(row_name(row.id, row.text, row.ordinal) for row in equal[:2])
        for equal in rows[:SHOWN_ROWS]
    ]
    more = ", ..." if len(rows) > SHOWN_ROWS else ""
    return f" ({', '.join(shown)}{more})" if shown else ""


def list_long(summaries: Summaries) -> str:
    """Return a warning that names the rows whose norm is far above the median."""
    if Norms not in summaries:
        return ""
    median = summaries.of(Norms).quantile(0.5)
    long = [
        f"{row_name(row.id, row.text, row.ordinal)} {row.norm / median:.0f} times"
        for row in _named(summaries).long
        if row.norm >= LONG_ROW * median > 0
    ]
    return f"rows far longer than the median: {', '.join(long[:SHOWN_ROWS])}" if long else ""


def _heavy_tail(summaries: Summaries) -> str:
    """Return a warning where few of the longest rows decide how much norms vary.

    Both the longest hundredth and the longest thousandth must fall slowly: sinks of about one
    length are an edge, not a tail.
    """
    if Norms not in summaries:
        return ""
    norms = summaries.of(Norms)
    known = [found for share in TAILS if (found := norms.tail_index(share)) is not None]
    if not known or max(known) >= LIGHT_TAIL:
        return ""
    return f"norms have a heavy tail (index {max(known):.1f}): the interval may be too narrow"


def _unseen_tail(summaries: Summaries) -> str:
    """Return a warning where few documents of unequal length decide how much norms vary.

    Whether the next one is far longer, they do not show: where no long one was drawn the
    interval is too narrow, and nothing in the sample tells. What tells is that the lengths
    of documents differ, and that there are few.
    """
    if Norms not in summaries:
        return ""
    tally = summaries.of(Tally)
    if tally.documents < LEAST_DOCUMENTS or tally.count**2 >= SHOW_TAIL * tally.pairs:
        return ""
    share, variation = summaries.of(Norms).between_documents(tally.pairs)
    if share < BETWEEN or variation < (UNEVEN_ROWS if tally.independent else UNEVEN):
        return ""
    many = f"{tally.documents} {'rows' if tally.independent else 'documents'}"
    return (
        f"norms differ by {variation:.0%} between {many}, too few to show a heavy tail: "
        "the interval may be too narrow"
    )


def _named(summaries: Summaries) -> NamedRowsSummary:
    """Return the rows that are known by name; none where the source has no names."""
    if NamedRows not in summaries:
        return NamedRowsSummary((), (), (), ())
    return summaries.of(NamedRows)

"""What a measure's record claims about it, checked for every measure we ship."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock, Gradients, Keys, Queries, QueryScores, Tally
from isoscope.accumulate.heads import STATISTICS
from isoscope.accumulate.survey import SECOND_PASS, Survey
from isoscope.api import measure
from isoscope.hashing import named_documents
from isoscope.measures import MEASURES, level
from isoscope.measures.view import (
    Clusters,
    FarNeighbours,
    Halves,
    Neighbours,
    Pairs,
    RawSpectrum,
    Spectrum,
)
from isoscope.study.lanes import run
from isoscope.study.reading import kinds_for, read_survey
from isoscope.study.rows import ROWS as PLACE
from isoscope.types import Chunk

WIDTH = 16
EXACT = (
    Neighbours,
    FarNeighbours,
    Pairs,
    Clusters,
)  # read off a sample of rows, the same bit by bit
NAMES = tuple(
    m.name for m in MEASURES.values() if m.offered not in ("text", "heads", "gradients")
)
OF_HEADS = tuple(m.name for m in MEASURES.values() if m.offered == "heads")
OF_GRADIENTS = tuple(m.name for m in MEASURES.values() if m.offered == "gradients")
OF_TEXT = tuple(m.name for m in MEASURES.values() if m.offered == "text")
BIBLIOGRAPHY = Path(__file__).parents[2] / "docs" / "references.bib"


def measures(test=lambda _record: True):
    """Run a law for every measure that it speaks of."""
    chosen = [record for record in MEASURES.values() if test(record)]
    return pytest.mark.parametrize("record", chosen, ids=lambda record: record.name)


every_measure = measures()
spectral = measures(lambda m: m.isotropic is not None and m.reads in (Spectrum, RawSpectrum))


def planted(documents=80, each=5, seed=7):
    """Return a skewed cloud off the origin, its rows alike within documents."""
    rng = np.random.default_rng(seed)
    names = np.repeat(np.arange(documents), each)
    own = rng.exponential(size=(len(names), WIDTH))
    shared = rng.normal(size=(documents, WIDTH))[names]
    return (own + 0.5 * shared) * np.linspace(0.5, 2.0, WIDTH) - 0.4, names


CLOUD, DOCUMENTS = planted()
ROTATION = np.linalg.qr(np.random.default_rng(8).normal(size=(WIDTH, WIDTH)))[0]
MOVES = {
    "rotation": lambda rows: rows @ ROTATION,
    "scale": lambda rows: 37.0 * rows,
    "shift": lambda rows: rows + 100.0,
    "none": lambda rows: rows,
}


def by_name(readings):
    return {each.measure: each for each in readings}


def of_text(rows, documents=None):
    """Return the readings of measures of texts: rows get documents and tokens of their own."""
    numbers = np.arange(len(rows))
    names = numbers // 4 if documents is None else documents
    tokens = (numbers * numbers + 3 * numbers) % 23  # each type in many documents
    positions = (numbers - np.searchsorted(names, names)).astype(np.uint64)
    survey = Survey()
    block = ArrayBlock(rows, named_documents(names), positions, tokens=tokens)
    survey.update(PLACE, kinds_for(OF_TEXT), block)
    return by_name(read_survey(survey, OF_TEXT)[0])


def of_heads(rows, documents=None):
    """Return the readings of a head: its queries and keys are rows, taken in turns."""
    numbers = np.arange(len(rows))
    names = named_documents(numbers // 4 if documents is None else documents)
    places = numbers.astype(np.uint64)
    asks = numbers % 2 == 0
    parts = {Queries: asks, Keys: ~asks}
    held = {Tally: Tally(rows.shape[1])}
    for kind, chosen in parts.items():
        block = ArrayBlock(rows[chosen], names[chosen], places[chosen])
        held[kind] = kind(rows.shape[1])
        held[kind].update(block)
        if kind is Queries:
            held[Tally].update(block)
    statistics, of, at = attention(rows, names, asks)
    held[QueryScores] = QueryScores(len(STATISTICS))
    held[QueryScores].update(ArrayBlock(statistics, of, at))
    return by_name(read_survey(Survey({("head.0.0", "all"): held}), OF_HEADS)[0])


def of_gradients(rows, documents=None):
    """Return the readings of gradients: every second row, the others make the proxy."""
    numbers = np.arange(len(rows))
    names = named_documents(numbers // 4 if documents is None else documents)
    early, width = numbers % 2 == 0, rows.shape[1]
    if width < 2:  # no proxy has fewer directions than the space
        return {}
    _, axes = np.linalg.eigh(rows[early].T @ rows[early])
    basis = axes[:, ::-1][:, : min(width // 2, 30)]
    held = {Tally: Tally(width), Gradients: Gradients(width, basis)}
    block = ArrayBlock(rows[~early], names[~early], numbers[~early].astype(np.uint64))
    for each in held.values():
        each.update(block)
    found, _ = read_survey(Survey({("grad.0", "all"): held}), OF_GRADIENTS, controls=99)
    chosen = [each for each in found if each.group in ("", "random")]
    return by_name(sorted(chosen, key=lambda each: each.group, reverse=True))


def attention(rows, names, asks):
    """Return the statistics of every query of every document; the longest key is the sink."""
    found, documents = [], []
    scale = rows.shape[1] ** -0.5
    for name in dict.fromkeys(names.tolist()):
        here = names == name
        queries, keys = rows[here & asks], rows[here & ~asks]
        if not len(keys):
            continue
        sink = np.argmax(np.linalg.norm(keys, axis=1))
        for query in queries:
            with np.errstate(over="ignore"):
                scores = keys @ query * scale
            p = np.exp(scores - scores.max())
            p /= p.sum()
            several = len(keys) > 1
            entropy = -(p[p > 0] * np.log(p[p > 0])).sum()
            relative = entropy / np.log(len(keys)) if several else 0.0
            values = scores.std(), several, relative, p.max(), p[0], p[sink], scale
            found.append((1.0, *values))
            documents.append(name)
    of = np.array(documents, dtype=np.uint64)
    shape = (-1, len(STATISTICS))
    return np.array(found).reshape(shape), of, np.arange(len(of), dtype=np.uint64)


def everything(rows, documents=None):
    readings = by_name(measure(rows, document=documents, all=True))
    texts, heads = of_text(rows, documents), of_heads(rows, documents)
    return readings | texts | heads | of_gradients(rows, documents)


@cache
def moved(move):
    return everything(MOVES[move](CLOUD), DOCUMENTS)


# --- what the record claims --------------------------------------------------------------


@every_measure
@pytest.mark.parametrize("move", ["rotation", "scale", "shift"])
def test_claimed_invariances_hold_and_no_others(record, move):
    before, after = moved("none")[record.name].value, moved(move)[record.name].value
    # the mean far away costs a dozen digits of 16, a move that matters shows in the third
    kept = np.isclose(after, before, rtol=1e-6, atol=1e-12)
    changed = not np.isclose(after, before, rtol=1e-3, atol=1e-6)
    assert (kept, changed) == (move in record.unmoved_by, move not in record.unmoved_by)


@every_measure
def test_the_interval_has_the_same_invariances(record):
    before = moved("none")[record.name]
    for move in record.unmoved_by:
        after = moved(move)[record.name]
        # groups are known by a float32 sketch
        ends = pytest.approx((before.low, before.high), rel=1e-3, abs=1e-6)
        assert (after.low, after.high) == ends, move


@cache
def ball(n, d):
    return everything(np.random.default_rng([n, d]).normal(size=(n, d)))


@cache
def draws(n, d):
    """Return what four balls of a size read, by the measures whose isotropic value is zero."""
    zero = [
        m for m in NAMES if (it := MEASURES[m].isotropic) is not None and not level(it, n, d)
    ]
    rows = [np.random.default_rng([n, d, draw]).normal(size=(n, d)) for draw in range(4)]
    return [
        by_name(measure(each, measures=zero)) | of_text(each) | of_heads(each) for each in rows
    ]


def deviation(name, n, d):
    """Return the standard deviation of a reading over four balls of a size."""
    return float(np.std([found[name].value for found in draws(n, d)], ddof=1))


def allowance(record, expected, n, d):
    """Return by how much one ball may be off where the isotropic value is zero.

    A share of zero allows nothing. What can be claimed then is a value that one draw does
    not contradict: four standard deviations of one draw. The largest of n eigenvalues stand
    about two of them apart on average: 0.018 of the largest at 4000 x 40, 0.025 at 1200 x 60
    and 0.069 at 60 x 100, with deviations of 0.010, 0.014 and 0.039 over sixty balls.
    """
    return 4 * deviation(record.name, n, d) if expected == 0 else 0.0


@measures(lambda record: record.isotropic is not None)
@pytest.mark.parametrize(("n", "d"), [(4000, 40), (1200, 60)])
def test_a_ball_reads_as_isotropic(record, n, d):
    reading = ball(n, d)[record.name]
    expected = level(record.isotropic, reading.n, d)
    # one draw of Gaussian rows: some per cent of noise, and edges of a law for large n and d
    allowed = max(0.02, allowance(record, expected, n, d))
    assert reading.value == pytest.approx(expected, rel=0.06, abs=allowed)


@measures(lambda record: record.isotropic is not None and record.reads is not Halves)
def test_a_ball_of_fewer_rows_than_dimensions_does_too(record):
    reading = ball(60, 100)[record.name]
    expected = level(record.isotropic, reading.n, 100)
    allowed = max(0.02, allowance(record, expected, 60, 100))
    assert reading.value == pytest.approx(expected, rel=0.06, abs=allowed)


@spectral
@pytest.mark.parametrize(("n", "d"), [(4000, 40), (60, 100)])
def test_the_bias_of_few_rows_is_part_of_what_is_called_isotropic(record, n, d):
    expected, endless = (level(record.isotropic, rows, d) for rows in (n, 10**9))
    bias = abs(expected - endless)
    allowed = max(0.3 * bias, 0.02 * abs(endless), allowance(record, expected, n, d))
    assert abs(ball(n, d)[record.name].value - expected) < allowed


@cache
def line():
    rng = np.random.default_rng(9)
    rows = np.outer(rng.uniform(1, 1.2, size=800), rng.normal(size=WIDTH))
    return everything(rows)


@measures(lambda record: record.collapsed is not None)
def test_one_direction_reads_as_collapsed(record):
    reading = line()[record.name]
    # 800 neighbours on a line know its dimension to some per cent; lengths differ a little
    expected = pytest.approx(level(record.collapsed, reading.n, WIDTH), rel=0.12, abs=1e-4)
    assert reading.value == expected


@every_measure
def test_it_explains_itself(record):
    assert re.fullmatch(r"[A-Z].{10,88}[.?]", record.title)
    assert record.formula and record.misleads.endswith(".")
    assert f"{{{record.cite}," in BIBLIOGRAPHY.read_text()
    assert record.unmoved_by <= {"rotation", "scale", "shift"}
    assert record.note.title == record.title


@every_measure
def test_it_reads_what_one_pass_gives_or_says_that_it_does_not(record):
    assert record.second_pass == bool(set(record.reads.needs) & set(SECOND_PASS))


@every_measure
def test_what_stands_beside_it_is_announced(record):
    found = [name for name in moved("none") if name.startswith(f"{record.name}-")]
    beside = [f"{record.name}-{suffix}" for suffix in record.beside]
    assert [name for name in found if name not in MEASURES] == beside


# --- the same value however the rows came ------------------------------------------------


def chunks(rows, documents, size, start=0):
    for first in range(0, len(rows), size):
        part = slice(first, first + size)
        names = None if documents is None else documents[part]
        yield Chunk(rows[part], "rows", start + first, names)


def surveyed(rows, documents, size, start=0):
    """Return the first pass over rows that arrive in chunks; a sample makes up for a second."""
    kinds = [kind for kind in kinds_for(NAMES) if kind not in SECOND_PASS]
    return run(chunks(rows, documents, size, start), PLACE, kinds)[0]


def read(survey):
    return by_name(read_survey(survey, NAMES)[0])


@cache
def in_one_piece(documents):
    return read(surveyed(CLOUD, DOCUMENTS if documents else None, len(CLOUD)))


def ends_of(reading):
    """Return the ends of an interval; some companions have none."""
    return [end for end in (reading.low, reading.high) if end is not None]


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, reading in expected.items():
        value = found[name].value
        if name in MEASURES and MEASURES[name].reads in EXACT:
            assert value == reading.value, name
        # 1e-9: float64 sums in another order
        assert value == pytest.approx(reading.value, rel=1e-9, abs=1e-12), name
        for ours, end in zip(ends_of(found[name]), ends_of(reading), strict=True):
            assert ours == pytest.approx(end, rel=1e-3, abs=1e-6), name
        assert (found[name].n, found[name].warnings) == (reading.n, reading.warnings)


@pytest.mark.parametrize("size", [1, 7, 64, 199])
@pytest.mark.parametrize("documents", [False, True])
def test_chunks_do_not_matter(documents, size):
    names = DOCUMENTS if documents else None
    assert_same(read(surveyed(CLOUD, names, size)), in_one_piece(documents))


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_documents_does_not_matter(seed):
    shuffled = np.random.default_rng(seed).permutation(80)
    order = np.concatenate([np.flatnonzero(name == DOCUMENTS) for name in shuffled])
    found = read(surveyed(CLOUD[order], DOCUMENTS[order], 90))
    assert_same(found, in_one_piece(True))


@pytest.mark.parametrize("documents", [False, True])
@pytest.mark.parametrize("cut", [15, 200, 395])
def test_parts_measured_apart_merge_into_the_whole(documents, cut):
    names = DOCUMENTS if documents else None
    halves = [
        surveyed(CLOUD[part], None if names is None else names[part], 50, start)
        for part, start in ((slice(0, cut), 0), (slice(cut, None), cut))
    ]
    for first, second in (halves, halves[::-1]):
        total = Survey()
        total.merge(first)
        total.merge(second)
        assert_same(read(total), in_one_piece(documents))


def test_a_second_pass_reads_what_the_sample_does_while_it_holds_every_row():
    again = by_name(measure(CLOUD, document=DOCUMENTS, all=True))
    assert_same(again, in_one_piece(True))


# --- intervals ---------------------------------------------------------------------------


def with_one(row, at=3):
    rows = np.random.default_rng(10).normal(size=(64, WIDTH))
    rows[at] = row
    return rows


RNG = np.random.default_rng(11)
ODD = {
    "planted": CLOUD,
    "ball": RNG.normal(size=(100, WIDTH)),
    "far": RNG.normal(size=(100, WIDTH)).astype(np.float32) + 1e4,
    "line": np.outer(RNG.normal(size=100), RNG.normal(size=WIDTH)),
    "few": RNG.normal(size=(9, WIDTH)),
    "two": RNG.normal(size=(2, WIDTH)),
    "wide": RNG.normal(size=(12, 300)),
    "identical": np.full((40, WIDTH), 0.1),
    "zeros": np.zeros((40, WIDTH)),
    "one-hot": np.eye(40),
    "one differs": np.ones((40, WIDTH)) + np.eye(40, WIDTH)[3:4] * np.eye(40)[:, :1],
    "one is not zero": np.zeros((40, WIDTH)) + np.eye(40, WIDTH),
    "one is long": with_one(600.0 * np.eye(WIDTH)[0]),
    "one is huge": with_one(1e9 * np.ones(WIDTH)),
    "one dimension": RNG.normal(size=(50, 1)),
    "signs": np.sign(RNG.normal(size=(60, WIDTH))),
    "copies": np.repeat(RNG.normal(size=(10, WIDTH)), 8, axis=0),
    "tiny": 1e-30 * RNG.normal(size=(60, WIDTH)),
    "lengths": RNG.lognormal(sigma=4, size=(60, 1)) * RNG.normal(size=(60, WIDTH)),
}


@pytest.mark.parametrize("documents", [False, True])
@pytest.mark.parametrize("name", ODD)
def test_every_value_is_a_number_inside_its_interval(name, documents):
    rows = ODD[name]
    names = np.arange(len(rows)) // 3 if documents else None
    for reading in everything(rows, names).values():
        assert np.isfinite(reading.value), reading.measure
        assert (reading.low is None) == (reading.high is None), reading.measure
        if reading.low is not None:
            assert np.isfinite([reading.low, reading.high]).all(), reading.measure
            slack = 1e-9 * max(1.0, abs(reading.value))
            assert reading.low - slack <= reading.value <= reading.high + slack, reading.measure

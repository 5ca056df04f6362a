"""Copies: exact while distinct rows are few, a fair estimate beyond, no false alarms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope.accumulate import Copies, merged
from isoscope.accumulate.copies import SIZE, content_hashes
from isoscope.errors import TooFewRowsError


def by_definition(rows):
    """Rows that repeat an earlier one, over all rows."""
    seen, copies = set(), 0
    for row in rows:
        copies += row.tobytes() in seen
        seen.add(row.tobytes())
    return copies / len(rows)


@given(
    picks=st.lists(st.integers(0, 9), min_size=1, max_size=80),
    kind=st.sampled_from([np.float32, np.float64]),
)
def test_few_distinct_rows_are_counted_exactly(make_block, feed, picks, kind):
    rows = np.random.default_rng(1).normal(size=(10, 3)).astype(kind)[picks]
    summary = feed(Copies(3), make_block(rows)).finalize()
    assert summary.share == pytest.approx(by_definition(rows), abs=1e-15)
    assert summary.count == len(rows)


@pytest.mark.parametrize("distinct", [1, 1000, SIZE])
def test_up_to_1024_distinct_rows_the_share_is_exact(make_block, feed, distinct):
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(distinct, 4)).astype(np.float32)
    rows = rng.permutation(np.concatenate([rows, rows[rng.integers(0, distinct, 700)]]))
    blocks = [make_block(rows[i : i + 300], first=i) for i in range(0, len(rows), 300)]
    assert feed(Copies(4), *blocks).finalize().share == by_definition(rows)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
def test_beyond_that_the_share_is_a_fair_estimate(make_block, feed, share):
    rng = np.random.default_rng(3)
    distinct = rng.normal(size=(round(30_000 * (1 - share)), 6)).astype(np.float32)
    again = distinct[rng.integers(0, len(distinct), 30_000 - len(distinct))]
    rows = rng.permutation(np.concatenate([distinct, again]))
    blocks = [make_block(rows[i : i + 4000], first=i) for i in range(0, len(rows), 4000)]
    # 1,024 of the distinct rows are looked at: two per cent, twice over.
    assert feed(Copies(6), *blocks).finalize().share == pytest.approx(share, abs=0.04)


def test_shards_in_any_order_keep_the_very_same_hashes(make_block, feed):
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(8000, 3))[rng.integers(0, 8000, 9000)]
    parts = [
        feed(Copies(3), make_block(rows[i : i + 1000], first=i)) for i in range(0, 9000, 1000)
    ]
    whole = feed(Copies(3), make_block(rows))
    for order in (parts, parts[::-1]):
        other = merged(order)
        np.testing.assert_array_equal(whole.hashes, other.hashes)
        np.testing.assert_array_equal(whole.times, other.times)


# Rows whose bits have little in common with random ones: each once was taken for a copy.
KINDS = {
    "whole numbers as float64": lambda rng, d: rng.integers(-100, 100, (20_000, d)) * 1.0,
    "whole numbers as float32": lambda rng, d: rng.integers(-100, 100, (20_000, d)).astype(
        np.float32
    ),
    "signs as float64": lambda rng, d: rng.choice([-1.0, 1.0], (5000, d)),
    "signs as float32": lambda rng, d: rng.choice([-1.0, 1.0], (5000, d)).astype(np.float32),
    "eight bits as float64": lambda rng, d: np.round(rng.normal(size=(20_000, d)) * 64) / 64,
    "one-hot": lambda _rng, d: np.eye(d, dtype=np.float32),
    "one-hot as float64": lambda _rng, d: np.eye(d),
}


@pytest.mark.parametrize("width", [33, 64, 768])
@pytest.mark.parametrize("kind", KINDS)
def test_different_rows_have_different_hashes(kind, width):
    rows = KINDS[kind](np.random.default_rng(5), width)[: 20_000 if width < 100 else 2000]
    distinct = len({row.tobytes() for row in rows})
    assert distinct == len(rows)
    assert len(np.unique(content_hashes(rows))) == distinct


def test_a_limit_keeps_the_hashes_below_it():
    rows = np.random.default_rng(6).normal(size=(5000, 20)).astype(np.float32)
    hashes = content_hashes(rows)
    for share in (0.01, 0.3, 1.0):
        limit = np.sort(hashes)[int(share * 4999)]
        below = content_hashes(rows, limit)
        assert sorted(below.tolist()) == sorted(hashes[hashes <= limit].tolist())


def test_the_hash_of_a_row_does_not_depend_on_its_neighbours():
    rows = np.random.default_rng(7).normal(size=(50, 20)).astype(np.float32)
    hashes = content_hashes(rows)
    assert content_hashes(rows[10:20]).tolist() == hashes[10:20].tolist()
    spread = np.repeat(rows, 2, axis=1)[:, ::2]  # not contiguous
    assert content_hashes(spread).tolist() == hashes.tolist()


def test_one_row_has_no_copy(make_block, feed):
    assert feed(Copies(2), make_block(np.ones((1, 2)))).finalize().share == 0.0


def test_no_rows_have_no_share():
    with pytest.raises(TooFewRowsError, match="copies needs at least 1 usable rows, got 0"):
        Copies(2).finalize()


@pytest.mark.parametrize("copies", [1, 3])
def test_the_smallest_hashes_are_all_there_where_others_are_not_computed(copies):
    rows = np.random.default_rng(7).normal(size=(3000, 40)).astype(np.float32)
    rows[:, ::3] = np.round(rows[:, ::3])  # some have the same upper half
    rows = np.repeat(rows, copies, axis=0)
    every = np.sort(content_hashes(rows))
    found = np.sort(content_hashes(rows, most=100))
    assert copies * 100 <= len(found) < len(every)
    assert found.tolist() == every[: len(found)].tolist()

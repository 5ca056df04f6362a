"""The reservoir: the same rows whatever the order, the cuts and the shards, and no bias."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from isoscope.accumulate import ArrayBlock, Reservoir, merged
from isoscope.accumulate.reservoir import SIZE
from isoscope.errors import MergeError, TooFewRowsError
from isoscope.hashing import hash_tuples, named_documents, ordinal_documents

N = 20_000
ROWS = np.arange(2 * N, dtype=np.float64).reshape(N, 2)  # a row tells its number
LENGTHS = [1 + i % 9 for i in range(N // 5)]  # five on the average
assert sum(LENGTHS) <= N


def by_definition(block, size):
    """Sort all rows by hash, then document, then position; keep the first."""
    hashes = hash_tuples(block.documents, block.positions)
    keys = zip(hashes.tolist(), block.documents.tolist(), block.positions.tolist(), strict=True)
    order = sorted(range(len(block)), key=list(keys).__getitem__)
    return block.rows[order[:size]]


@pytest.fixture(scope="module")
def blocks(make_blocks):
    sizes = [400] * 10
    return make_blocks(ROWS[: sum(LENGTHS)], LENGTHS, sizes)


@pytest.fixture(scope="module")
def whole(make_block):
    return make_block(ROWS[: sum(LENGTHS)], LENGTHS)


def test_the_rows_of_smallest_hash_are_kept_in_their_order(whole, feed):
    summary = feed(Reservoir(2), whole).finalize()
    np.testing.assert_array_equal(summary.rows, by_definition(whole, SIZE))
    assert summary.count == SIZE and summary.seen == len(whole)


def test_few_rows_are_all_kept(make_block, feed):
    block = make_block(ROWS[:100])
    summary = feed(Reservoir(2), block).finalize()
    assert sorted(summary.rows[:, 0]) == sorted(block.rows[:, 0])


def test_seven_shuffled_shards_have_the_very_sample_of_one_reader(whole, blocks, feed):
    one = feed(Reservoir(2), whole)
    rng = np.random.default_rng(1)
    for _ in range(3):
        shards = [Reservoir(2) for _ in range(7)]
        for block in rng.permutation(len(blocks)):
            shards[rng.integers(7)].update(blocks[block])
        other = merged([shards[i] for i in rng.permutation(7)])
        for name in ("hashes", "documents", "positions", "rows"):
            np.testing.assert_array_equal(one.state()[name], other.state()[name])


@given(seed=st.integers(0, 2**32), size=st.integers(1, 60), cuts=st.integers(1, 12))
def test_any_size_cuts_and_order_come_to_the_same(make_blocks, feed, seed, size, cuts):
    rng = np.random.default_rng(seed)
    lengths = [3] * (5 * cuts)
    pieces = make_blocks(ROWS[: sum(lengths)], lengths, [5] * cuts)
    here = [pieces[i] for i in rng.permutation(cuts)]
    whole = make_blocks(ROWS[: sum(lengths)], lengths, [5 * cuts])[0]
    np.testing.assert_array_equal(
        feed(Reservoir(2, size), *here).finalize().rows, by_definition(whole, size)
    )


def test_a_document_that_is_in_both_parts_is_refused(blocks, feed):
    # Shards whose ids start again: rows of two documents would pass for one another.
    once = feed(Reservoir(2), *blocks[:3])
    with pytest.raises(MergeError, match="rows of the same document and position"):
        once.merge(feed(Reservoir(2), blocks[1]))


def test_every_position_is_as_likely_as_any_other():
    """Ten bins of positions over 200 seeds: the counts follow the uniform law."""
    counts = np.zeros(10)
    for seed in range(200):
        keys = ordinal_documents("rows", np.arange(1000, dtype=np.uint64), seed=seed)
        sample = Reservoir(1, 100)
        sample.update(ArrayBlock(np.arange(1000.0)[:, None], keys))
        counts += np.bincount((sample.rows[:, 0] // 100).astype(int), minlength=10)
    assert stats.chisquare(counts).pvalue > 1e-3


def test_long_documents_are_sampled_by_their_rows(whole, feed):
    """Positions within documents are kept in proportion to how many rows have them."""
    sample = feed(Reservoir(2), whole)
    there = np.bincount(whole.positions.astype(int))
    kept = np.bincount(sample.positions.astype(int), minlength=len(there))
    expected = there * (kept.sum() / there.sum())
    assert stats.chisquare(kept, expected).pvalue > 1e-3


@pytest.mark.parametrize("seed", range(5))
def test_the_largest_hash_tells_how_many_rows_there_were(seed):
    n = 200_000
    keys = ordinal_documents("rows", np.arange(n, dtype=np.uint64), seed=seed)
    sample = Reservoir(1)
    sample.update(ArrayBlock(np.zeros((n, 1), dtype=np.float32), keys))
    tau = float(sample.hashes[-1]) / 2.0**64
    # Its standard deviation is one in the root of 2,048, or 2.2 per cent.
    assert (SIZE - 1) / tau == pytest.approx(n, rel=0.08)


def test_one_wide_part_makes_the_sample_wide(make_block, feed):
    narrow = (ROWS[:60] / 3).astype(np.float32)
    sample = feed(Reservoir(2), make_block(narrow))
    assert sample.rows.dtype == np.float32
    sample.update(make_block(ROWS[60:90] / 3, first=60))
    assert sample.rows.dtype == np.float64
    kept = sample.finalize().rows
    assert {tuple(row) for row in kept[:, :1]} == {
        *map(tuple, narrow[:, :1].astype(np.float64)),
        *map(tuple, ROWS[60:90, :1] / 3),
    }


def test_a_wide_peer_makes_the_sample_wide_and_stays_as_it_was(make_block, feed):
    narrow = feed(Reservoir(2), make_block(ROWS[:60].astype(np.float32)))
    wide = feed(Reservoir(2), make_block(ROWS[60:90] / 3, first=60))
    assert merged([narrow, wide]).rows.dtype == np.float64
    assert merged([wide, narrow]).rows.dtype == np.float64
    assert narrow.rows.dtype == np.float32


def test_a_full_reservoir_keeps_taking_better_rows(make_block, feed):
    first, second = make_block(ROWS[:500]), make_block(ROWS[500:1000], first=500)
    sample = feed(Reservoir(2, 50), first, second)
    both = make_block(ROWS[:1000])
    np.testing.assert_array_equal(sample.finalize().rows, by_definition(both, 50))
    assert len(sample.kept.room) == 50


def test_samples_of_different_size_do_not_merge(make_block, feed):
    with pytest.raises(MergeError, match="cannot merge Reservoir"):
        Reservoir(2, 10).merge(Reservoir(2, 20))
    back = Reservoir.from_state(feed(Reservoir(2, 10), make_block(ROWS[:50])).state(), width=2)
    assert back.size == 10


def test_an_empty_reservoir_has_nothing_to_say():
    with pytest.raises(TooFewRowsError, match="reservoir needs at least 1 usable rows, got 0"):
        Reservoir(2).finalize()


def test_distinct_leaves_out_copies_and_keeps_the_order(make_block, feed):
    rows = ROWS[[0, 1, 1, 2, 0, 3]]
    summary = feed(Reservoir(2), make_block(rows)).finalize()
    kept = summary.distinct()
    assert kept.count == 4 and kept.seen == 6
    firsts = list(dict.fromkeys(map(tuple, summary.rows)))
    assert [tuple(row) for row in kept.rows] == firsts


@pytest.mark.parametrize("number", [3, 10, 17, 25, 40])
def test_rows_are_spread_over_documents(make_block, feed, number):
    block = make_block(ROWS[:40], [7, 1, 4, 4, 4, 4, 4, 4, 4, 4])
    summary = feed(Reservoir(2), block).finalize()
    kept = summary.spread_over_documents(number)
    turns, seen = [], {}
    for place, document in enumerate(summary.documents.tolist()):
        seen[document] = seen.get(document, -1) + 1
        turns.append((seen[document], place))
    chosen = sorted(place for _, place in sorted(turns)[:number])
    np.testing.assert_array_equal(kept.rows, summary.rows[chosen])
    np.testing.assert_array_equal(kept.documents, summary.documents[chosen])


def test_where_nothing_is_excluded_it_is_the_same_sample(make_block, feed):
    summary = feed(Reservoir(2), make_block(ROWS[:40])).finalize()
    assert summary.distinct() is summary and summary.spread_over_documents(40) is summary


@pytest.mark.parametrize("documents", [20, 200])
def test_each_row_carries_its_group(make_block, feed, documents):
    summary = feed(Reservoir(2), make_block(ROWS[: documents * 3], [3] * documents)).finalize()
    keys = summary.documents if documents <= 32 else summary.documents % np.uint64(32)
    assert summary.cells.max() == len(np.unique(keys)) - 1
    for key in np.unique(keys):
        assert len(set(summary.cells[keys == key].tolist())) == 1


def test_rows_and_documents_together_are_not_independent(make_block, feed):
    sample = feed(Reservoir(2), make_block(ROWS[:10]))
    assert sample.finalize().independent
    other = ArrayBlock(ROWS[10:14], named_documents(["a", "a", "b", "b"]))
    sample.update(other)
    assert not sample.finalize().independent


def test_rows_that_differ_only_in_the_sign_of_zero_are_copies(make_block, feed):
    rows = np.random.default_rng(3).normal(size=(6, 40)).astype(np.float32)
    rows[:, 0], rows[4] = 0.0, rows[1]
    rows[4, 0] = -0.0
    summary = feed(Reservoir(40), make_block(rows)).finalize()
    assert summary.distinct().count == 5


def test_rows_that_differ_in_one_number_are_distinct(make_block, feed):
    rows = np.ones((40, 40), dtype=np.float32)
    rows[np.arange(40), np.arange(40)] = 2.0
    summary = feed(Reservoir(40), make_block(rows)).finalize()
    assert summary.distinct() is summary


def test_a_larger_sample_than_usual_comes_back_and_merges():
    def sample(first):
        found = Reservoir(3, size=5000)
        rows = np.random.default_rng(first).standard_normal((3000, 3)).astype(np.float32)
        found.update(ArrayBlock(rows, np.arange(first, first + 3000, dtype=np.uint64)))
        return Reservoir.from_state(found.state(), width=3)

    whole = sample(0)
    whole.merge(sample(10_000))
    assert whole.rows.shape == (5000, 3)

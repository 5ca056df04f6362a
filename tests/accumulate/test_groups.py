"""Groups against the scatter of every group, about its own mean and about any centre."""

import numpy as np
import pytest

from isoscope.accumulate import Groups, merged
from isoscope.accumulate.block import directions
from isoscope.errors import MergeError
from isoscope.hashing import GROUPS, named_documents

WIDE = 40  # more than the sketch has directions


def cloud(n, d=WIDE, seed=21, mean=5.0):
    return np.random.default_rng(seed).normal(size=(n, d)) * np.linspace(1, 3, d) + mean


def by_definition(rows, lengths):
    """Rows, mean, trace and T W of every group, group by group."""
    keys = named_documents(np.repeat(np.arange(len(lengths)), lengths))
    if len(lengths) > GROUPS:
        keys = keys % np.uint64(GROUPS)
    for key in np.unique(keys):
        here = rows[keys == key].astype(np.float64)
        z = here - here.mean(axis=0)
        scatter = sum(np.outer(y, y) for y in z)
        yield key, here, np.trace(scatter), scatter @ directions(rows.shape[1])


def assert_groups(summary, rows, lengths, rtol=1e-5):
    expected = list(by_definition(rows, lengths))
    assert summary.keys.tolist() == [key for key, *_ in expected]
    assert summary.groups == len(expected) and summary.count == len(rows)
    for i, (key, here, trace, sketch) in enumerate(expected):
        assert summary.sizes[i] == len(here)
        assert summary.halves[i] == int(key) % 2
        np.testing.assert_allclose(summary.mean[i], here.mean(axis=0), rtol=1e-6, atol=1e-6)
        assert summary.trace[i] == pytest.approx(trace, rel=rtol, abs=1e-9)
        size = np.abs(sketch).max() + np.var(rows, axis=0).sum()  # float32 on purpose
        np.testing.assert_allclose(summary.sketch[i], sketch, atol=rtol * size)


@pytest.mark.parametrize("documents", [5, 32, 33, 100])
def test_every_group_has_its_mean_trace_and_sketch(make_block, feed, documents):
    lengths = [1 + i % 7 for i in range(documents)]
    rows = cloud(sum(lengths))
    summary = feed(Groups(WIDE), make_block(rows, lengths)).finalize()
    assert_groups(summary, rows, lengths)
    assert summary.documents == documents


def test_32_documents_are_kept_apart_and_33_are_dealt_to_groups(make_block, feed):
    for documents, most in ((32, 32), (33, 31)):
        block = make_block(cloud(documents), [1] * documents)
        summary = feed(Groups(WIDE), block).finalize()
        assert summary.groups <= most
        assert (summary.keys.max() < GROUPS) == (documents > 32)


@pytest.mark.parametrize("sizes", [[100], [1] * 100, [20, 13, 67], [33, 67], [90, 10]])
def test_folding_comes_to_the_same_whenever_it_happens(make_blocks, feed, sizes):
    lengths = [1 + i % 4 for i in range(100)]
    rows = cloud(sum(lengths))
    summary = feed(Groups(WIDE), *make_blocks(rows, lengths, sizes)).finalize()
    assert_groups(summary, rows, lengths)


@pytest.mark.parametrize("documents", [20, 100])
def test_parts_in_any_order_merge_into_the_whole(make_blocks, feed, documents):
    lengths = [3] * documents
    rows = cloud(sum(lengths))
    blocks = make_blocks(rows, lengths, [5] * (documents // 5))
    parts = [feed(Groups(WIDE), block) for block in blocks]
    for order in (parts, parts[::-1]):
        assert_groups(merged(order).finalize(), rows, lengths)


def test_float32_rows_far_from_zero_keep_the_digits_of_their_scatter(make_blocks, feed):
    lengths = [8] * 64
    rows = (cloud(512, mean=0) + 1e4).astype(np.float32)
    summary = feed(Groups(WIDE), *make_blocks(rows, lengths, [16] * 4)).finalize()
    assert_groups(summary, rows, lengths, rtol=1e-4)


def test_narrow_rows_have_their_whole_scatter_as_sketch(make_block, feed):
    rows = cloud(60, d=6)
    summary = feed(Groups(6), make_block(rows, [3] * 20)).finalize()
    np.testing.assert_allclose(summary.sketch, summary.sketch.transpose(0, 2, 1), rtol=1e-5)
    np.testing.assert_allclose(np.trace(summary.sketch, axis1=1, axis2=2), summary.trace, 1e-5)


def test_about_moves_traces_and_sketches_to_a_centre(make_block, feed):
    lengths = [4] * 12
    rows = cloud(48)
    summary = feed(Groups(WIDE), make_block(rows, lengths)).finalize()
    centre = np.linspace(-1, 1, WIDE)
    trace, sketch = summary.about(np.tile(centre, (summary.groups, 1)))
    for i, (_, here, _, _) in enumerate(by_definition(rows, lengths)):
        scatter = (here - centre).T @ (here - centre)
        assert trace[i] == pytest.approx(np.trace(scatter), rel=1e-6)
        slow = scatter @ directions(WIDE)
        np.testing.assert_allclose(sketch[i], slow, atol=1e-5 * np.abs(slow).max())


def test_without_a_group_the_others_stay_as_they_are(make_block, feed):
    summary = feed(Groups(WIDE), make_block(cloud(48), [4] * 12)).finalize()
    less = summary.without(3)
    assert less.groups == 11 and less.count == 44
    for name in ("keys", "halves", "sizes", "mean", "trace", "sketch"):
        whole = getattr(summary, name)
        np.testing.assert_array_equal(getattr(less, name), np.delete(whole, 3, axis=0))


def test_independent_rows_have_groups_without_a_sketch(make_block, feed):
    rows = cloud(200)
    summary = feed(Groups(WIDE), make_block(rows)).finalize()
    assert summary.sketch.shape == (32, WIDE, 0)
    keys = make_block(rows).documents % np.uint64(GROUPS)
    for i, key in enumerate(np.unique(keys)):
        here = rows[keys == key]
        np.testing.assert_allclose(summary.mean[i], here.mean(axis=0), rtol=1e-12)
        assert summary.trace[i] == pytest.approx(((here - here.mean(axis=0)) ** 2).sum())
    trace, sketch = summary.about(np.zeros((32, WIDE)))
    assert trace.sum() == pytest.approx((rows**2).sum()) and sketch.size == 0


def test_rows_with_documents_and_rows_without_do_not_mix(make_block, feed):
    named, alone = make_block(cloud(8), [4, 4]), make_block(cloud(8))
    for first, second in ((named, alone), (alone, named)):
        with pytest.raises(MergeError, match="rows that have documents with rows that have no"):
            feed(Groups(WIDE), first, second)
        with pytest.raises(MergeError, match="rows that have documents with rows that have no"):
            merged([feed(Groups(WIDE), first), feed(Groups(WIDE), second)])


def test_a_saved_state_knows_whether_it_has_a_sketch(make_block, feed):
    for block in (make_block(cloud(8), [4, 4]), make_block(cloud(8))):
        seen = feed(Groups(WIDE), block)
        back = Groups.from_state(seen.state(), width=WIDE)
        back.merge(seen)
        assert back.rank == seen.rank and back.count == 16


def test_looking_at_the_state_does_not_settle_what_is_held(make_blocks, feed):
    lengths = [3] * 40
    rows = cloud(120)
    blocks = make_blocks(rows, lengths, [10] * 4)
    watched, plain = Groups(WIDE), feed(Groups(WIDE), *blocks)
    for block in blocks:
        watched.update(block)
        watched.state()
    np.testing.assert_array_equal(watched.finalize().sketch, plain.finalize().sketch)


def test_squares_of_documents_are_summed_in_each_group(make_block, feed):
    lengths = [1, 5, 2, 7] * 20
    rows = cloud(300)
    summary = feed(Groups(WIDE), make_block(rows, lengths)).finalize()
    keys = make_block(rows, lengths).documents
    own, pairs = dict.fromkeys(range(GROUPS), 0.0), dict.fromkeys(range(GROUPS), 0.0)
    for key in np.unique(keys):
        here = rows[keys == key]
        own[int(key) % GROUPS] += np.square(here.sum(axis=0)).sum()
        pairs[int(key) % GROUPS] += len(here) ** 2
    np.testing.assert_allclose(summary.own, [own[int(k)] for k in summary.keys], rtol=1e-9)
    np.testing.assert_array_equal(summary.pairs, [pairs[int(k)] for k in summary.keys])


@pytest.mark.parametrize(("documents", "known"), [(12, True), (80, False)])
def test_a_state_of_before_the_squares_is_read(make_block, feed, documents, known):
    lengths = [3, 1, 4] * (documents // 3) + [2] * (documents % 3)
    groups = feed(Groups(WIDE), make_block(cloud(sum(lengths)), lengths))
    state = {k: v for k, v in groups.state().items() if k not in ("own", "pairs")}
    again, whole = Groups.from_state(state, width=WIDE).finalize(), groups.finalize()
    assert np.isnan(again.own).all()
    if known:  # each group is a document, whose length is known
        np.testing.assert_array_equal(again.pairs, whole.pairs)
    else:
        assert np.isnan(again.pairs).all()

"""Classes of rows, added up and put right, are the whole documents they were cut from."""

from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope.accumulate import (
    ArrayBlock,
    Directions,
    DocumentSums,
    Groups,
    Moments,
    Norms,
    Overlap,
    Sentences,
    Tally,
    merged,
)
from isoscope.accumulate.overlap import Meeting
from isoscope.hashing import GROUPS, named_documents

WIDTH = 4
KINDS = (Tally, Directions, Groups, Moments, Norms, Sentences)


@st.composite
def splits(draw, *, fewest=2, most=60):
    """Rows of documents, each row in one of four classes, cut into batches."""
    lengths = draw(st.lists(st.integers(1, 6), min_size=fewest, max_size=most))
    seed = draw(st.integers(0, 2**31))
    rng = np.random.default_rng(seed)
    n = sum(lengths)
    rows = rng.normal(size=(n, WIDTH)) + 1
    rows[rng.random(n) < 0.1] = 0  # rows without a direction
    number = np.repeat(np.arange(len(lengths)), lengths)
    cuts = np.sort(rng.integers(0, len(lengths) + 1, size=draw(st.integers(0, 3))))
    classes = rng.integers(0, draw(st.integers(1, 4)), size=n)
    return rows, number, classes, np.digitize(number, cuts)


def positions(number):
    return np.concatenate([np.arange(n) for n in np.bincount(number) if n]).astype(np.uint64)


def document_sums(rows, keys):
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    units = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
    names, where = np.unique(keys, return_inverse=True)
    sums = np.zeros((len(names), WIDTH))
    np.add.at(sums, where, units)
    total = np.zeros_like(sums)
    np.add.at(total, where, rows)
    nonzero = np.bincount(where, norms[:, 0] > 0).astype(float)
    return DocumentSums(names, sums, total, nonzero, np.bincount(where).astype(float))


def whole_and_parts(rows, number, classes, batch):
    """Return accumulators of whole documents, those of classes merged, and the overlap."""
    keys, place = named_documents(number), positions(number)
    folded = len(np.unique(number)) > GROUPS
    whole = {kind: kind(WIDTH) for kind in KINDS}
    parts = [{kind: kind(WIDTH) for kind in KINDS} for _ in range(4)]
    overlaps = []
    for each in np.unique(batch):
        here = batch == each
        for kind in KINDS:
            whole[kind].update(ArrayBlock(rows[here], keys[here], place[here], folded=folded))
        met = []
        for row_class in np.unique(classes[here]):
            chosen = here & (classes == row_class)
            block = ArrayBlock(rows[chosen], keys[chosen], place[chosen], folded=folded)
            for kind in KINDS:
                parts[row_class][kind].update(block)
            met.append(document_sums(rows[chosen], keys[chosen]))
        overlap = Overlap(WIDTH)
        if len(met) > 1:
            overlap.add_meeting(Meeting.of(met, folded=folded))
        overlaps.append(overlap)
    together = {kind: merged(part[kind] for part in parts) for kind in KINDS}
    return whole, together, merged(overlaps)


def check(whole, together):
    np.testing.assert_array_equal(together[Directions].keys, whole[Directions].keys)
    for name in ("own", "pairs", "nonzero"):
        np.testing.assert_allclose(
            together[Directions].parts[name], whole[Directions].parts[name], atol=1e-9
        )
    ours, theirs = together[Groups].finalize(), whole[Groups].finalize()
    for name in ("own", "pairs", "sizes", "trace"):
        np.testing.assert_allclose(
            getattr(ours, name), getattr(theirs, name), rtol=1e-9, atol=1e-6
        )
    for name in ("likeness", "sentences"):
        np.testing.assert_allclose(
            together[Sentences].parts[name], whole[Sentences].parts[name], atol=1e-9
        )
    for kind in KINDS:
        assert getattr(together[kind], "documents", 0) == getattr(whole[kind], "documents", 0)
        assert together[kind].count == whole[kind].count
    assert astuple(together[Tally].finalize()) == astuple(whole[Tally].finalize())


@given(split=splits(most=20))
def test_few_documents_in_classes_are_the_whole_ones(split):
    whole, together, overlap = whole_and_parts(*split)
    overlap.correct(together.values())
    assert not together[Directions].folded
    check(whole, together)


@given(split=splits(fewest=GROUPS + 1))
def test_many_documents_in_classes_are_the_whole_ones(split):
    whole, together, overlap = whole_and_parts(*split)
    overlap.correct(together.values())
    assert together[Directions].folded
    check(whole, together)


@given(split=splits())
def test_the_order_of_classes_does_not_matter(split):
    rows, number, classes, batch = split
    one = whole_and_parts(rows, number, classes, batch)[2]
    other = whole_and_parts(rows, number, 3 - classes, batch)[2]
    np.testing.assert_allclose(one.parts["own"], other.parts["own"], atol=1e-9)
    np.testing.assert_array_equal(one.parts["pairs"], other.parts["pairs"])
    assert one.finalize() == other.finalize()
    assert (one.documents, one.row_pairs) == (other.documents, other.row_pairs)


def test_without_it_documents_would_count_twice():
    rows, number = np.ones((6, WIDTH)), np.array([0, 0, 0, 1, 1, 1])
    whole, together, overlap = whole_and_parts(
        rows, number, np.array([0, 1, 1, 0, 1, 1]), np.zeros(6, dtype=int)
    )
    assert together[Tally].documents == 4
    assert overlap.documents == 2
    overlap.correct(together.values())
    assert together[Tally].documents == whole[Tally].documents == 2
    assert together[Tally].pairs == whole[Tally].pairs == 18
    assert together[Directions].parts["own"].sum() == pytest.approx(18)


def test_classes_that_share_no_document_lack_nothing():
    rows, number = np.ones((4, WIDTH)), np.array([0, 0, 1, 1])
    _, _, overlap = whole_and_parts(
        rows, number, np.array([0, 0, 1, 1]), np.zeros(4, dtype=int)
    )
    assert (overlap.finalize(), overlap.row_pairs) == (0, 0.0)
    assert not overlap.parts["own"].any()
    assert not overlap.parts["pairs"].any()


def test_it_comes_back_from_its_state():
    rng = np.random.default_rng(0)
    number = np.repeat(np.arange(40), 3)
    overlap = whole_and_parts(
        rng.normal(size=(120, WIDTH)), number, np.tile([0, 1, 1], 40), number // 10
    )[2]
    again = Overlap.from_state(overlap.state(), width=WIDTH)
    assert again.count == overlap.count > 0
    for name, array in overlap.state().items():
        np.testing.assert_array_equal(again.state()[name], array)

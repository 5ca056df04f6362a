"""The sums of a block against plain loops, cell by cell."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from isoscope.accumulate import ArrayBlock
from isoscope.accumulate.block import directions, sketch_rank
from isoscope.hashing import GROUPS, named_documents, ordinal_documents

WIDTH = 3
values = st.integers(-80, 80).map(lambda i: i / 8)
documents = st.lists(st.integers(1, 4), min_size=1, max_size=60)


@st.composite
def clouds(draw):
    lengths = draw(documents)
    rows = draw(arrays(np.float64, (sum(lengths), WIDTH), elements=values, fill=st.nothing()))
    return rows, lengths


def cell_of(block):
    """The cell key of each row, by the definition."""
    many = len(set(block.documents.tolist())) > GROUPS
    return [int(key) % GROUPS if many else int(key) for key in block.documents]


def summed_by_definition(block):
    """Every sum, row by row in float64, by cell key; and how large its terms are together."""
    origin = block.origin.astype(np.float64)
    seen = directions(block.width)
    sums = {}
    for row, key in zip(block.rows.astype(np.float64), cell_of(block), strict=True):
        here = sums.setdefault(key, dict.fromkeys(NAMES, (0.0, 0.0)))
        z, norm = row - origin, np.sqrt(row @ row)
        u = row / norm if norm else np.zeros(len(row))
        one = (1, float(norm > 0), z, z @ z, (z @ z) * z, (z @ z) ** 2, u, u * u)
        for name, term in zip(NAMES, (*one, np.outer(z @ seen, z)), strict=True):
            total, size = here[name]
            here[name] = total + term, size + np.abs(term).max()
    return sums


NAMES = (
    "count",
    "nonzero",
    "total",
    "trace",
    "cubic",
    "quartic",
    "units",
    "energy",
    "sketch",
)


def assert_sums_match(block, rounding):
    expected = summed_by_definition(block)
    assert {int(key) for key in block.cells.keys} == set(expected)
    for i, key in enumerate(block.cells.keys):
        for name in NAMES:
            want, size = expected[int(key)][name]
            if name == "energy":  # kept of all cells together
                continue
            got = getattr(block.sums, name)[i]
            np.testing.assert_allclose(got, want, rtol=0, atol=rounding * size, err_msg=name)


@given(cloud=clouds())
def test_energy_is_summed_over_all_cells(make_block, cloud):
    block = make_block(*cloud)
    expected = sum(cell["energy"][0] for cell in summed_by_definition(block).values())
    np.testing.assert_allclose(block.sums.energy, expected, rtol=1e-9, atol=1e-12)


@given(cloud=clouds())
def test_the_sums_of_every_cell_equal_plain_loops(make_block, cloud):
    assert_sums_match(make_block(*cloud), rounding=1e-14)


@given(cloud=clouds())
def test_float32_rows_give_the_same_sums_to_their_precision(make_block, cloud):
    rows, lengths = cloud
    assert_sums_match(make_block(rows.astype(np.float32), lengths), rounding=1e-6)


@given(cloud=clouds())
def test_cells_hold_the_rows_of_their_documents(make_block, cloud):
    block = make_block(*cloud)
    cells, keys = block.cells, np.array(cell_of(block), dtype=np.uint64)
    assert cells.folded == (len(cloud[1]) > GROUPS)
    assert sorted(cells.order.tolist()) == list(range(len(block)))
    for i, key in enumerate(cells.keys):
        rows = cells.order[cells.starts[i] : cells.starts[i + 1]]
        assert sorted(rows.tolist()) == np.flatnonzero(keys == key).tolist()
        assert cells.halves[i] == key % 2


@given(cloud=clouds())
def test_half_zero_comes_first_and_the_split_says_where_it_ends(make_block, cloud):
    block = make_block(*cloud)
    cells = block.cells
    half = (block.documents % np.uint64(2))[cells.order]
    assert (np.diff(half.astype(int)) >= 0).all()
    assert cells.split == int((half == 0).sum())


def test_32_documents_are_cells_of_their_own_and_33_are_groups(make_block):
    few, many = (make_block(np.ones((n, 2)), [1] * n) for n in (GROUPS, GROUPS + 1))
    assert not few.cells.folded and len(few.cells.keys) == GROUPS
    assert many.cells.folded and many.cells.keys.max() < GROUPS


def test_a_document_stays_in_its_half_when_documents_become_groups(make_block):
    few, many = (make_block(np.ones((n, 2)), [1] * n) for n in (20, 200))
    halves = {int(few.documents[i]): int(half) for i, half in _by_row(few)}
    later = {int(many.documents[i]): int(half) for i, half in _by_row(many)}
    assert halves.items() <= later.items()


def _by_row(block):
    cells = block.cells
    by_cell = np.repeat(cells.halves, np.diff(cells.starts))
    return zip(cells.order, by_cell, strict=True)


@given(cloud=clouds())
def test_the_scatters_are_those_of_the_halves(make_block, cloud):
    block = make_block(*cloud)
    z = block.rows - block.origin
    for half in (0, 1):
        here = z[block.documents % np.uint64(2) == half]
        slow = sum((np.outer(row, row) for row in here), np.zeros((WIDTH, WIDTH)))
        np.testing.assert_allclose(block.scatters[half], slow, rtol=1e-10, atol=1e-9)


@given(cloud=clouds())
def test_document_sums_are_squares_of_the_sums_of_each_document(make_block, cloud):
    block = make_block(*cloud)
    own, pairs, raw, rows = ({int(key): 0.0 for key in block.cells.keys} for _ in range(4))
    norms = np.linalg.norm(block.rows, axis=1)
    units = np.divide(block.rows, norms[:, None], where=norms[:, None] > 0, out=block.rows * 0)
    keys = np.array(cell_of(block), dtype=object)
    for name in np.unique(block.documents):
        here = block.documents == name
        total = units[here].sum(axis=0)
        own[int(keys[here][0])] += total @ total
        pairs[int(keys[here][0])] += np.count_nonzero(norms[here]) ** 2
        raw[int(keys[here][0])] += np.square(block.rows[here].sum(axis=0)).sum()
        rows[int(keys[here][0])] += here.sum() ** 2
    found = block.document_squares
    np.testing.assert_allclose(found.units, list(own.values()), atol=1e-10)
    np.testing.assert_array_equal(found.nonzero, list(pairs.values()))
    np.testing.assert_allclose(found.total, list(raw.values()), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(found.rows, list(rows.values()))


def test_independent_rows_are_documents_of_one_row(make_block):
    rows = np.random.default_rng(3).normal(size=(90, 4))
    rows[7] = 0
    alone, named = make_block(rows), make_block(rows, [1] * 90)
    assert alone.independent and not named.independent
    assert len(alone.members.runs) == len(named.members.runs) == 91
    np.testing.assert_array_equal(alone.document_squares.units.sum(), 89)
    np.testing.assert_allclose(named.document_squares.units.sum(), 89)
    np.testing.assert_array_equal(named.document_squares.nonzero.sum(), 89)


def test_rows_without_documents_are_called_by_their_ordinal():
    block = ArrayBlock(np.ones((5, 2)), start=100)
    expected = ordinal_documents("rows", np.arange(100, 105, dtype=np.uint64))
    np.testing.assert_array_equal(block.documents, expected)


def test_runs_say_where_each_document_begins(make_block):
    assert make_block(np.ones((6, 2)), [2, 1, 3]).members.runs.tolist() == [0, 2, 3, 6]


@given(cloud=clouds())
def test_squares_are_in_the_order_of_the_rows(make_block, cloud):
    block = make_block(*cloud)
    slow = [float(row @ row) for row in block.rows]
    np.testing.assert_allclose(block.squares, slow, rtol=1e-12)


def test_scratch_memory_changes_nothing_whatever_its_shape(make_block):
    rows = np.random.default_rng(4).normal(size=(70, 5))
    plain = make_block(rows, [7] * 10)
    for room in (
        np.full((70, 5), np.nan),
        np.full((100, 5), np.nan),
        np.full((10, 5), np.nan),  # too small
        np.full((100, 6), np.nan),
        np.full((100, 5), np.nan, dtype=np.float32),
    ):
        other = make_block(rows, [7] * 10, scratch=room)
        np.testing.assert_array_equal(other.sums.sketch, plain.sums.sketch)
        np.testing.assert_array_equal(other.scatters[0], plain.scatters[0])


def test_a_block_without_a_sketch_has_the_same_other_sums(make_block):
    rows = np.random.default_rng(4).normal(size=(70, 40))
    bare, whole = (make_block(rows, [7] * 10, sketched=each) for each in (False, True))
    assert bare.sums.sketch.size == 0
    for name in NAMES[:-1]:
        ours, theirs = getattr(bare.sums, name), getattr(whole.sums, name)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def test_independent_rows_need_no_sketch(make_block):
    assert make_block(np.ones((40, 5))).sums.sketch.size == 0


def test_about_takes_the_centre_from_every_row_and_keeps_the_rest(make_block):
    rows = np.random.default_rng(5).normal(size=(20, 3))
    for block in (make_block(rows, [5] * 4), make_block(rows)):
        moved = block.about(np.array([1.0, 2.0, 3.0]))
        np.testing.assert_allclose(moved.rows, rows - [1, 2, 3], atol=1e-15)
        np.testing.assert_array_equal(moved.documents, block.documents)
        np.testing.assert_array_equal(moved.positions, block.positions)
        assert moved.independent == block.independent


def test_reordered_rows_keep_their_documents_and_positions(make_block):
    block = make_block(np.arange(6.0).reshape(3, 2), [2, 1])
    moved = block.reorder(np.array([2, 0, 1]))
    assert moved.rows[:, 0].tolist() == [4, 0, 2]
    np.testing.assert_array_equal(moved.documents, block.documents[[2, 0, 1]])
    np.testing.assert_array_equal(moved.positions, block.positions[[2, 0, 1]])
    assert not moved.independent


@pytest.mark.parametrize(("width", "rank"), [(1, 1), (48, 48), (49, 48), (256, 48), (4096, 48)])
def test_the_sketch_has_all_axes_when_they_are_few(width, rank):
    assert sketch_rank(width) == rank
    assert directions(width).shape == (width, rank)
    if width == rank:
        np.testing.assert_array_equal(directions(width), np.eye(width))


def test_the_directions_are_the_same_for_ever():
    # Saved sketches are sums over these very numbers: another generator would spoil them.
    np.testing.assert_allclose(
        directions(60)[0, :2], [0.056675848582300126, -0.06733946518627912]
    )


def test_names_of_documents_may_be_hashed_before(make_block):
    rows = np.ones((4, 2))
    block = ArrayBlock(rows, named_documents(np.array(["a", "a", "b", "b"])))
    assert len(block.members.runs) == 3
    assert block.positions.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("centre", [0.0, 40.0])
@pytest.mark.parametrize("lengths", [[700, 3, 1, 900], [40] * 50], ids=["few", "groups"])
def test_sums_are_the_same_bits_wherever_the_sorted_parts_end(centre, lengths, monkeypatch):
    rng = np.random.default_rng(0)
    rows = (centre + rng.standard_normal((sum(lengths), 24))).astype(np.float32)
    rows[:2] = 0
    keys = named_documents(np.repeat(np.arange(len(lengths)), lengths).astype(str))
    at_once = ArrayBlock(rows, keys)
    monkeypatch.setattr("isoscope.accumulate.block._PART", 10**6)
    monkeypatch.setattr("isoscope.accumulate.block._TAKEN", 10**6)
    expected = at_once.sums  # every row is sorted before the first cell is summed
    assert bool(at_once.origin.any()) is bool(centre)
    for part, taken in [(512, 256), (64, 48), (7, 3)]:
        monkeypatch.setattr("isoscope.accumulate.block._PART", part)
        monkeypatch.setattr("isoscope.accumulate.block._TAKEN", taken)
        block = ArrayBlock(rows, keys)
        for name in set(NAMES) - {"energy"}:  # summed part by part
            np.testing.assert_array_equal(
                getattr(block.sums, name), getattr(expected, name), err_msg=name
            )
        np.testing.assert_allclose(block.sums.energy, expected.energy, rtol=1e-5)
        np.testing.assert_array_equal(block.squares, at_once.squares)


def test_a_centre_beyond_float32_is_taken_from_rows_in_float64(make_block):
    rows = np.ones((4, 3), dtype=np.float32)
    about = make_block(rows).about(np.array([1e60, 0.0, 1.0]))
    np.testing.assert_array_equal(about.rows, np.tile([-1e60, 1.0, 0.0], (4, 1)))

"""Sums of gradients against every row: energies by part, scatters by share, precision."""

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock, GradientPieces, Gradients
from isoscope.accumulate.gradients import PARTS, ShareSums
from isoscope.errors import MergeError
from isoscope.hashing import named_documents

WIDTH = 6
BASIS = np.linalg.qr(np.random.default_rng(3).normal(size=(WIDTH, 2)))[0]


def rows_of(seed=0, documents=50, each=4, dtype=np.float64):
    rows = np.random.default_rng(seed).normal(size=(documents * each, WIDTH)) + 0.5
    keys = named_documents(np.repeat([f"{seed}-{n}" for n in range(documents)], each))
    return rows.astype(dtype), keys, np.arange(len(rows), dtype=np.uint64)


def test_they_are_the_sums_of_all_rows():
    rows, keys, places = rows_of()
    band = np.arange(len(rows)) % 5
    held = Gradients(WIDTH, BASIS)
    held.update(ArrayBlock(rows, keys, places, frequency=band))
    seen = held.finalize()
    total = seen.sums.sum(axis=(0, 1))  # (bands, 2 + k)
    for number in range(5):
        here = rows[band == number]
        expected = [len(here), np.square(here).sum(), *np.square(here @ BASIS).sum(axis=0)]
        assert total[number] == pytest.approx(np.array(expected))
    for share in range(8):
        here = rows[keys % np.uint64(8) == share]
        off = here - here.mean(axis=0)
        assert seen.share_mean[share] == pytest.approx(here.mean(axis=0))
        assert seen.scatter[share] == pytest.approx(off.T @ off)
    assert seen.bands_seen == (0, 1, 2, 3, 4)
    assert seen.halves_seen == (0,)


def test_rows_of_float32_are_kept_in_float32():
    rows, keys, places = rows_of(dtype=np.float32)
    held = Gradients(WIDTH, BASIS)
    held.update(ArrayBlock(rows, keys, places))
    assert held.state()["scatter"].dtype == np.float32
    assert held.finalize().bands_seen == ()  # frequencies are unknown
    wide = Gradients(WIDTH, BASIS)
    wide.update(ArrayBlock(*rows_of(1)))
    wide.merge(held)
    assert wide.state()["scatter"].dtype == np.float64


def test_sums_along_other_directions_do_not_add_up():
    one, other = Gradients(WIDTH, BASIS), Gradients(WIDTH, BASIS[:, ::-1])
    for each in (one, other):
        each.update(ArrayBlock(*rows_of()))
    with pytest.raises(MergeError):
        one.merge(other)
    with pytest.raises(MergeError):
        one.merge(Gradients(WIDTH, BASIS, seed=1))


def test_sums_that_were_made_elsewhere_are_taken_in():
    rows, keys, places = rows_of()
    whole, made = Gradients(WIDTH, BASIS), Gradients(WIDTH, BASIS)
    whole.update(ArrayBlock(rows, keys, places))
    groups = keys % np.uint64(32)
    sums = np.zeros((32, PARTS, 4))
    np.add.at(sums[:, 0], groups.astype(int), made.row_sums(rows))
    shares = (keys % np.uint64(8)).astype(int)
    count, total = np.zeros(8), np.zeros((8, WIDTH))
    np.add.at(count, shares, 1)
    np.add.at(total, shares, rows)
    products = np.zeros((8, WIDTH, WIDTH))
    np.add.at(products, shares, rows[:, :, None] * rows[:, None, :])
    made.add_sums(
        np.arange(32, dtype=np.uint64),
        True,
        sums,
        ShareSums.about_zero(count, total, products),
        documents=50,
        counted=False,
    )
    for name, array in whole.state().items():
        np.testing.assert_allclose(made.state()[name], array, rtol=1e-9, atol=1e-9)


def test_scatters_of_halves_and_bands_are_those_of_their_rows():
    rows, keys, places = rows_of()
    band = np.arange(len(rows)) % 5
    parts = [GradientPieces(WIDTH) for _ in range(2)]
    half = len(rows) // 2
    for held, here in zip(parts, (slice(half), slice(half, None)), strict=True):
        held.update(ArrayBlock(rows[here], keys[here], places[here], frequency=band[here]))
    parts[0].merge(parts[1])
    seen = parts[0].finalize()
    assert seen.documents == 50
    assert seen.share_rows[0].sum() == len(rows) and not seen.share_rows[1].any()
    for number in range(5):
        for share in range(8):
            here = rows[(band == number) & (keys % np.uint64(8) == share)]
            off = here - here.mean(axis=0)
            assert seen.share_mean[2 + number, share] == pytest.approx(here.mean(axis=0))
            assert seen.scatter[2 + number, share] == pytest.approx(off.T @ off)


def test_sums_that_float32_cannot_hold_are_kept_in_float64():
    held = GradientPieces(2)
    shares = len(held.share_rows)
    for mean in (0.0, 1e30):
        sums = ShareSums(
            np.ones(shares), np.full((shares, 2), mean), np.ones((shares, 2, 2))
        )  # float32 rows as a damaged file may have them
        held.add_sums(sums, documents=1, single=True)
    assert held.scatter.dtype == np.float64
    np.testing.assert_allclose(held.scatter, 5e59)

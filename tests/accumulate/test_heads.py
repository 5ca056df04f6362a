"""Sums of heads against NumPy, and how much room they take."""

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock, EarlyKeys, Queries, QueryScores
from isoscope.accumulate.heads import SHARES, STATISTICS, pack, unpack
from isoscope.hashing import named_documents

NAMES = np.repeat(np.arange(60), 5)
ROWS = np.random.default_rng(0).normal(size=(300, 6)) * [3, 2, 1, 1, 1, 1] + 4


def fed(kind, rows=ROWS):
    part = kind(rows.shape[1])
    places = np.arange(len(rows), dtype=np.uint64)
    part.update(ArrayBlock(rows, named_documents(NAMES), places))
    return part


def test_means_units_and_scatters_are_those_of_the_rows():
    found = fed(Queries).finalize()
    assert found.documents == 60 and found.count == 300
    assert found.sizes @ found.mean / 300 == pytest.approx(ROWS.mean(axis=0))
    units = ROWS / np.linalg.norm(ROWS, axis=1, keepdims=True)
    assert found.units.sum(axis=0) == pytest.approx(units.sum(axis=0))
    share = np.repeat(named_documents(np.arange(60)) % np.uint64(SHARES), 5)
    for number in range(SHARES):
        here = ROWS[share == number]
        off = here - here.mean(axis=0)
        # 1e-6: halves of matrices are stored in float32
        assert found.scatter[number] == pytest.approx(off.T @ off, rel=1e-6, abs=1e-4)
        assert found.share_mean[number] == pytest.approx(here.mean(axis=0))
    assert found.share_rows.sum() == 300


def test_means_alone_are_those_of_the_rows():
    found = fed(EarlyKeys).finalize()
    assert found.sizes @ found.mean / 300 == pytest.approx(ROWS.mean(axis=0))


def test_statistics_add_up_by_group_and_by_position():
    rows = np.random.default_rng(1).random((300, len(STATISTICS)))
    found = fed(QueryScores, rows).finalize()
    assert found.sums.sum(axis=0) == pytest.approx(rows.sum(axis=0))
    assert found.bands.sum(axis=0) == pytest.approx(rows.sum(axis=0))
    assert found.bands[3] == pytest.approx(rows[4:8].sum(axis=0))
    assert len(found.keys) == len(set(named_documents(np.arange(60)) % np.uint64(32)))


def test_halves_of_symmetric_matrices_make_them_whole():
    matrices = np.einsum("nij,nkj->nik", *[np.arange(2 * 9.0).reshape(2, 3, 3)] * 2)
    assert pack(matrices).shape == (2, 6)
    assert (unpack(pack(matrices), 3) == matrices).all()


def test_a_head_of_width_64_takes_kilobytes():
    state = Queries(64).state()
    scatter = state["scatter"].nbytes
    assert scatter == SHARES * 64 * 65 // 2 * 4
    by_group = 32 * (2 * 64 + 2) * 8
    assert scatter + state["share_mean"].nbytes + by_group < 110_000

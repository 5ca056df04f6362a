"""The picture of a matrix, and finding tokens again by their keys."""

import numpy as np

from isoscope.accumulate import ArrayBlock, Moments, Reservoir, Vocabulary
from isoscope.accumulate.hashing import ordinal_documents
from isoscope.exhibit.embedding import BANDS, UNKNOWN, Counts, picture, tokens_of

SITE = "embed.weight"


def held(rows):
    found = {Moments: Moments(rows.shape[1]), Reservoir: Reservoir(rows.shape[1])}
    for part in found.values():
        keys = ordinal_documents(SITE, np.arange(len(rows), dtype=np.uint64), seed=7)
        part.update(ArrayBlock(rows, keys))
    return found


def test_tokens_are_found_again():
    keys = ordinal_documents(SITE, np.array([3, 99, 0], dtype=np.uint64), seed=7)
    found = tokens_of(np.append(keys, np.uint64(5)), SITE, 100, 7)
    assert found.tolist() == [3, 99, 0, -1]


def test_cells_count_every_row_of_the_sample():
    rows = np.random.default_rng(0).normal(size=(600, 12)) + 1.0
    curve = picture(held(rows), SITE, None, 7)
    assert curve.rows.sum() == 600
    assert curve.bands == (UNKNOWN,)
    axes = np.linalg.svd(rows)[2][:2].T
    spread = np.ptp(rows @ axes, axis=0)
    assert np.isclose(np.ptp(curve.x), spread[0], rtol=0.05)


def test_bands_are_how_often_tokens_were_seen():
    rows = np.random.default_rng(1).normal(size=(600, 12))
    words = Vocabulary(12)
    tokens = np.repeat(np.arange(300), [1, 20, 200] * 100)
    words.update(ArrayBlock(np.ones((len(tokens), 12)), tokens=tokens))
    counts = Counts(words)
    assert counts.bands(np.array([0, 1, 2, 500, -1])).tolist() == [1, 2, 3, 0, 4]
    curve = picture(held(rows), SITE, counts, 7)
    assert curve.bands == (*BANDS, UNKNOWN)
    by_band = np.bincount(curve.band, curve.rows)
    assert by_band.tolist() == [300, 100, 100, 100]


def test_without_a_sample_there_is_no_picture():
    assert picture({}, SITE, None, 0) is None

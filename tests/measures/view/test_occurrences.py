"""Singular values of a type's occurrences."""

from types import SimpleNamespace

import numpy as np
import pytest

from isoscope.accumulate import Vocabulary
from isoscope.hashing import GROUPS, type_hashes
from isoscope.measures.view import Occurrences, Summaries
from isoscope.measures.view.token_types import first_shares, scale_down


def first_share(rows):
    return float(first_shares(rows[None])[0])


@pytest.mark.parametrize("shape", [(5, 12), (16, 3)])
def test_the_share_is_that_of_the_singular_values(shape):
    rows = np.random.default_rng(0).normal(size=shape) + 0.5
    values = np.linalg.svd(rows, compute_uv=False) ** 2
    assert first_share(rows) == pytest.approx(values[0] / values.sum(), abs=1e-12)


def test_zeros_have_no_share():
    found = first_shares(np.stack([np.zeros((5, 3)), np.eye(5, 3)]))
    assert np.isnan(found[0])
    assert found[1] == pytest.approx(1 / 3)
    assert scale_down(np.zeros((0, 3), dtype=np.float32)).shape == (0, 3)


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_size_does_not_matter(size):
    rows = np.random.default_rng(1).normal(size=(6, 4))
    assert first_share(scale_down(rows * size)) == pytest.approx(first_share(rows), abs=1e-12)


def test_types_of_all_sizes_read_as_one_after_the_other():
    rng = np.random.default_rng(2)
    sizes = rng.integers(1, 17, 90)
    sizes[:40] = 7  # more than are looked at at once
    rows = rng.normal(size=(int(sizes.sum()), 9)) + 0.3
    owners = np.repeat(np.arange(len(sizes)), sizes)
    rows[owners == 3] = 0  # of a type without a direction nothing is known
    tokens = np.arange(100, 100 + len(sizes))
    hashes = type_hashes(tokens)
    kept = SimpleNamespace(
        rows=rows, owners=owners, tokens=tokens, hashes=hashes, vocabulary=500
    )
    summaries = Summaries()
    summaries[Vocabulary] = kept
    expected = []
    for kind in range(len(sizes)):
        if sizes[kind] >= 5 and kind != 3:
            draw = np.random.Generator(np.random.PCG64(int(hashes[kind])))
            other = rows[np.sort(draw.choice(len(rows), sizes[kind], replace=False))]
            mine = rows[owners == kind]
            shares = (np.linalg.svd(each, compute_uv=False) ** 2 for each in (mine, other))
            one = [each[0] / each.sum() for each in shares]
            expected.append((*one, sizes[kind], int(hashes[kind]) % GROUPS))
    shares, random, counts, groups = np.array(expected).T
    found = Occurrences.of(summaries)
    np.testing.assert_allclose(found.shares, shares, atol=1e-12)
    np.testing.assert_allclose(found.random, random, atol=1e-12)
    np.testing.assert_array_equal(found.rows, counts)
    np.testing.assert_array_equal(found.keys[found.cells], groups)
    assert (found.documents, found.known) == (len(shares), len(sizes))

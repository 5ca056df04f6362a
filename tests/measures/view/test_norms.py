"""Moments of the norms of each group, and of all but one."""

import numpy as np

from isoscope.hashing import named_documents
from isoscope.measures.norm_spread import norm_spread
from isoscope.measures.view import NormMoments


def test_without_a_group_the_norms_of_the_others_are_left(viewed):
    names = np.repeat(np.arange(10), 3).astype(str)
    rows = np.random.default_rng(1).normal(size=(30, 4)) + 0.5
    seen = viewed(NormMoments, rows, names)
    assert (seen.count, seen.documents, seen.groups) == (30, 10, 10)
    keys = named_documents(names)
    for group, key in enumerate(np.unique(keys)):
        norms = np.linalg.norm(rows[keys != key], axis=1)
        exact = norms.std(ddof=1) / norms.mean()
        np.testing.assert_allclose(norm_spread(seen.without(group)), exact)

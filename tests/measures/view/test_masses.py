"""Rows, mean and trace of each group, and of all but one."""

import numpy as np

from isoscope.hashing import named_documents
from isoscope.measures.mean_share import mean_share
from isoscope.measures.view import Masses


def test_groups_have_the_mass_of_their_rows(viewed):
    names = np.repeat(np.arange(10), 3).astype(str)
    rows = np.random.default_rng(1).normal(size=(30, 4)) + 0.5
    seen = viewed(Masses, rows, names)
    assert (seen.count, seen.documents, seen.groups) == (30, 10, 10)
    keys = named_documents(names)
    for group, key in enumerate(np.unique(keys)):
        others = rows[keys != key]
        mean = others.mean(axis=0)
        exact = mean @ mean / (others**2).sum(axis=1).mean()
        np.testing.assert_allclose(mean_share(seen.without(group)), exact)

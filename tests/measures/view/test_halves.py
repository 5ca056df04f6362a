"""Two halves of the documents: their covariances, and products across them."""

import numpy as np
import pytest

from isoscope.errors import TooFewRowsError
from isoscope.hashing import named_documents, ordinal_documents
from isoscope.measures.view import Halves, Spectrum
from isoscope.measures.view.parts import SampledParts, SketchedParts


def planted(d, documents=20, each=6, seed=1):
    rng = np.random.default_rng(seed)
    names = np.repeat(np.arange(documents), each).astype(str)
    return rng.normal(size=(len(names), d)) / np.arange(1, d + 1) ** 0.5 + 1, names


def test_each_half_has_the_covariance_of_its_documents(viewed):
    rows, names = planted(5)
    half = named_documents(names) % 2
    for side, found in enumerate(viewed(Halves, rows, names).covariances()):
        np.testing.assert_allclose(found, np.cov(rows[half == side].T), rtol=1e-9)


def test_rows_without_documents_are_dealt_to_halves_too(viewed):
    rows, _ = planted(5)
    half = ordinal_documents("rows", np.arange(120)) % 2
    for side, found in enumerate(viewed(Halves, rows).covariances()):
        np.testing.assert_allclose(found, np.cov(rows[half == side].T), rtol=1e-9)


def test_its_parts_are_sketches_of_documents_or_a_sample_of_rows(viewed):
    rows, names = planted(5)
    assert isinstance(viewed(Halves, rows, names).parts, SketchedParts)
    assert isinstance(viewed(Halves, rows).parts, SampledParts)


def test_it_knows_how_much_it_rests_on_and_the_whole(summaries):
    rows, names = planted(5)
    every = summaries(rows, names)
    seen = every.view(Halves)
    assert (seen.count, seen.documents) == (120, 20)
    assert seen.whole is every.view(Spectrum)


def test_rows_in_one_half_only_are_too_few(viewed):
    rows, names = planted(3, documents=1)
    message = r"at least 2 rows in each half of the documents, got (6 and 0|0 and 6)"
    with pytest.raises(TooFewRowsError, match=message):
        viewed(Halves, rows, names).covariances()

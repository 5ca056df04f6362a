"""Intra-similarity by type and by token."""

import numpy as np
import pytest

NAME = "intra-similarity"


def within(rows, tokens):
    """Return for each repeated type its count and the mean cosine of its pairs."""
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    for token in np.unique(tokens):
        (here,) = np.nonzero(tokens == token)
        cosines = [units[i] @ units[j] for i in here for j in here if i != j]
        if cosines:
            yield len(here), np.mean(cosines)


def test_by_type_it_is_self_similarity(words, token_readings):
    found = token_readings(*words, NAME, "self-similarity")
    assert found[NAME].value == found["self-similarity"].value


def test_by_token_every_occurrence_counts(words, token_readings):
    rows, _, tokens = words
    sizes, cosines = zip(*within(rows, tokens), strict=True)
    reading = token_readings(*words, NAME)[f"{NAME}-token"]
    assert reading.value == pytest.approx(np.average(cosines, weights=sizes), abs=1e-12)
    assert reading.low < reading.value < reading.high


def test_adjusted_it_is_less_inter_similarity(words, token_readings):
    found = token_readings(*words, NAME, "inter-similarity")
    adjusted = found[NAME].value - found["inter-similarity"].value
    assert found[f"{NAME}-adjusted"].value == pytest.approx(adjusted, abs=1e-12)


def test_of_a_single_type_there_is_nothing_to_adjust_by(token_readings):
    rows = np.random.default_rng(0).normal(size=(20, 4))
    found = token_readings(rows, np.arange(20), np.zeros(20, dtype=int), NAME)
    assert set(found) == {NAME, f"{NAME}-token"}

"""MEV is the share of the first singular value, type by type."""

import numpy as np
import pytest

from isoscope.hashing import hash_tuples, named_documents

NAME = "mev"


def kept(documents, tokens, token, most=16):
    """Return the rows of a type that are looked at: the smallest hashes of their place."""
    keys = named_documents(documents)
    positions = np.concatenate(
        [np.arange(n) for n in np.unique(documents, return_counts=True)[1]]
    )
    (here,) = np.nonzero(tokens == token)
    hashes = hash_tuples(keys[here], positions[here].astype(np.uint64))
    return here[np.argsort(hashes)[:most]]


def slow(rows, documents, tokens):
    shares = []
    for token in np.unique(tokens):
        values = np.linalg.svd(rows[kept(documents, tokens, token)], compute_uv=False) ** 2
        if np.sum(tokens == token) >= 5:
            shares.append(values[0] / values.sum())
    return np.mean(shares)


def test_it_is_its_definition(words, token_readings):
    reading = token_readings(*words, NAME)[NAME]
    assert reading.value == pytest.approx(slow(*words), abs=1e-12)
    assert reading.low < reading.value < reading.high


@pytest.mark.parametrize("size", [1, 7, 31])
def test_blocks_do_not_matter(words, token_readings, size):
    whole, cut = token_readings(*words, NAME), token_readings(*words, NAME, size=size)
    assert cut.keys() == {NAME, "mev-baseline", "mev-adjusted"}
    for name, reading in whole.items():
        assert cut[name].value == pytest.approx(reading.value, abs=1e-12)


def test_types_that_mean_nothing_read_as_the_baseline(words, token_readings):
    rows, documents, tokens = words
    shuffled = np.random.default_rng(5).permutation(rows)
    found = token_readings(shuffled, documents, tokens, NAME)["mev-adjusted"]
    assert found.low <= 0 <= found.high
    assert token_readings(*words, NAME)["mev-adjusted"].low > 0


@pytest.mark.parametrize(
    ("rows", "value"),
    [
        (np.outer([1, 2, -3, 4, 5], [1, 1, 0, 0, 0]), 1.0),
        (np.eye(5), 0.2),
        (np.diag([3.0, 1, 1, 1, 1]), 9 / 13),
    ],
)
def test_three_tiny_types(token_readings, rows, value):
    found = token_readings(rows.astype(float), np.arange(5), np.zeros(5, dtype=int), NAME)
    assert found[NAME].value == pytest.approx(value, abs=1e-12)


def test_it_says_how_many_types_it_is_of(token_readings):
    rng = np.random.default_rng(6)
    tokens = rng.integers(0, 400, size=6000)
    rows, documents = rng.normal(size=(6000, 5)), np.arange(6000) // 60
    found = token_readings(rows, documents, tokens, NAME, "self-similarity")
    assert found[NAME].warnings == ("from a sample of 256 of 400 token types",)
    assert found["self-similarity"].warnings == ()

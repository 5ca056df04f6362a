"""Sentence similarity is the mean cosine of rows to their document's mean."""

import numpy as np
import pytest

NAME = "sentence-similarity"


def slow(rows, documents):
    found = []
    for document in np.unique(documents):
        part = rows[documents == document]
        mean = part.mean(axis=0)
        if len(part) > 1:
            cosines = part @ mean / np.linalg.norm(part, axis=1) / np.linalg.norm(mean)
            found.append(cosines.mean())
    return np.mean(found)


def test_it_is_its_definition(words, token_readings):
    rows, documents, _ = words
    reading = token_readings(*words, NAME)[NAME]
    assert reading.value == pytest.approx(slow(rows, documents), abs=1e-12)
    assert reading.low < reading.value < reading.high


@pytest.mark.parametrize("offset", [0.0, 50.0])
@pytest.mark.parametrize("size", [1, 13])
def test_blocks_and_a_mean_far_away_do_not_matter(words, token_readings, size, offset):
    rows, documents, tokens = words
    found = token_readings(rows + offset, documents, tokens, NAME, size=size)
    assert found[NAME].value == pytest.approx(slow(rows + offset, documents), abs=1e-12)


def test_the_adjusted_value_is_less_what_rows_of_different_documents_read(
    words, token_readings
):
    found = token_readings(*words, NAME, "mean-cosine-cross")
    adjusted = found[NAME].value - found["mean-cosine-cross"].value
    assert found[f"{NAME}-adjusted"].value == pytest.approx(adjusted, abs=1e-12)
    assert found[f"{NAME}-adjusted"].low is not None


@pytest.mark.parametrize(
    ("rows", "value"),
    [
        ([[1, 0], [1, 0]], 1.0),
        ([[1, 0], [0, 1]], 0.5**0.5),
        ([[3, 0], [0, 4]], (0.6 + 0.8) / 2),
    ],
)
def test_three_tiny_documents(token_readings, rows, value):
    rows = np.array([*rows, [5, 5]], dtype=float)  # a row alone is its own mean: not counted
    found = token_readings(rows, [0, 0, 1], [0, 1, 2], NAME)
    assert found[NAME].value == pytest.approx(value, abs=1e-12)


def test_documents_of_one_row_have_nothing_to_say(measured):
    from isoscope.errors import TooFewRowsError

    with pytest.raises(TooFewRowsError, match="a document of at least 2 rows, got none"):
        measured(np.eye(6), NAME)

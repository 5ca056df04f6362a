"""Self-similarity is the mean cosine of the pairs of each type, averaged over types."""

import numpy as np
import pytest

from isoscope.accumulate.survey import Survey
from isoscope.study.reading import read_survey

NAME = "self-similarity"


def pairs(rows, tokens):
    """Return the mean over types of the cosines of all pairs, one by one."""
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    found = []
    for token in np.unique(tokens):
        (here,) = np.nonzero(tokens == token)
        cosines = [units[i] @ units[j] for i in here for j in here if i != j]
        found += [np.mean(cosines)] if cosines else []
    return np.mean(found)


def test_it_is_what_pairs_one_by_one_give(words, token_readings):
    rows, _, tokens = words
    reading = token_readings(*words, NAME)[NAME]
    assert reading.value == pytest.approx(pairs(rows, tokens), abs=1e-12)
    assert reading.n == len(rows)
    assert reading.low < reading.value < reading.high


def test_the_adjusted_value_is_less_what_rows_of_different_documents_read(
    words, token_readings
):
    found = token_readings(*words, NAME, "mean-cosine-cross")
    adjusted = found[NAME].value - found["mean-cosine-cross"].value
    assert found[f"{NAME}-adjusted"].value == pytest.approx(adjusted, abs=1e-12)


@pytest.mark.parametrize("size", [1, 7, 31])
def test_blocks_do_not_matter(words, token_readings, size):
    whole, cut = token_readings(*words, NAME), token_readings(*words, NAME, size=size)
    for name, reading in whole.items():
        assert cut[name].value == pytest.approx(reading.value, abs=1e-12)
        assert cut[name].low == pytest.approx(reading.low, abs=1e-9)


def test_parts_merge_into_the_whole(words, token_survey, token_readings):
    rows, documents, tokens = words
    total = Survey()
    for kept in (documents % 3 == 1, documents % 3 != 1):
        total.merge(token_survey(rows[kept], documents[kept], tokens[kept], [NAME]))
    expected = token_readings(*words, NAME)
    for reading in read_survey(total, [NAME])[0]:
        assert reading.value == pytest.approx(expected[reading.measure].value, abs=1e-12)


@pytest.mark.parametrize(
    ("rows", "tokens", "value"),
    [
        ([[1, 0], [2, 0], [0, 1]], [5, 5, 6], 1.0),
        ([[1, 0], [0, 1], [1, 0]], [5, 5, 6], 0.0),
        ([[1, 0], [-1, 0], [0, 1], [0, 3]], [5, 5, 6, 6], 0.0),
    ],
)
def test_three_tiny_clouds(token_readings, rows, tokens, value):
    rows = np.array(rows, dtype=float)
    found = token_readings(rows, np.arange(len(rows)), tokens, NAME)
    assert found[NAME].value == pytest.approx(value, abs=1e-12)


def test_where_no_type_repeats_it_is_excluded_and_the_rest_continues(words, token_survey):
    rows, documents, _ = words
    names = (NAME, "intra-similarity", "mev", "inter-similarity", "mean-cosine")
    survey = token_survey(rows, documents, np.arange(len(rows)), names)
    found, left_out = read_survey(survey, names)
    read = {each.measure for each in found}
    assert {"inter-similarity", "mean-cosine"} <= read
    assert left_out.keys() == {NAME, "intra-similarity", "mev"}
    assert "occurs at least 2 times, got none among 540 types" in left_out[NAME]
    assert "occurs at least 5 times" in left_out["mev"]


def test_rows_without_tokens_are_distinguished_from_rows_without_repeats(words, measured):
    from isoscope.errors import TooFewRowsError

    with pytest.raises(TooFewRowsError, match="needs rows with tokens"):
        measured(words[0], NAME)


def test_a_sample_of_a_large_vocabulary_says_so(token_readings):
    rng = np.random.default_rng(4)
    tokens = rng.integers(0, 4000, size=8000)
    rows, documents = rng.normal(size=(8000, 6)), np.arange(8000) // 100
    reading = token_readings(rows, documents, tokens, NAME)[NAME]
    (warning,) = reading.warnings
    assert warning.startswith("from a sample of 1024 of about ")
    # 3,459 types are expected, told from 1,024 smallest hashes to some per cent
    assert int(warning.split()[7]) == pytest.approx(len(np.unique(tokens)), rel=0.1)

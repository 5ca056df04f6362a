"""Inter-similarity is about pairs of different types."""

import numpy as np
import pytest

from isoscope.study.reading import read_survey

NAME = "inter-similarity"


def cosines(rows):
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return units @ units.T


def test_by_type_it_is_the_mean_over_all_choices_of_one_occurrence_each(words, token_readings):
    rows, _, tokens = words
    every, types = cosines(rows), np.unique(tokens)
    between = [
        every[np.ix_(tokens == a, tokens == b)].mean() for a in types for b in types if a != b
    ]
    reading = token_readings(*words, NAME)[NAME]
    assert reading.value == pytest.approx(np.mean(between), abs=1e-12)
    assert reading.low < reading.value < reading.high


def test_drawing_one_occurrence_of_each_type_gives_it_on_average(words, token_readings):
    rows, _, tokens = words
    rng = np.random.default_rng(3)
    drawn = []
    for _ in range(400):  # as the released code of Cai et al. does once
        one = [rng.choice(np.flatnonzero(tokens == token)) for token in np.unique(tokens)]
        near = cosines(rows[one])
        drawn.append(near[~np.eye(len(one), dtype=bool)].mean())
    value = token_readings(*words, NAME)[NAME].value
    # four standard errors of the mean of the draws
    assert abs(np.mean(drawn) - value) < 4 * np.std(drawn) / np.sqrt(len(drawn))


def test_by_token_it_is_the_mean_over_pairs_of_different_types(words, token_readings):
    rows, _, tokens = words
    other = tokens[:, None] != tokens
    reading = token_readings(*words, NAME)[f"{NAME}-token"]
    assert reading.value == pytest.approx(cosines(rows)[other].mean(), abs=1e-12)


def test_one_type_has_no_other(token_survey):
    survey = token_survey(np.ones((5, 3)), np.arange(5), np.zeros(5, dtype=int), [NAME])
    readings, missing = read_survey(survey, [NAME])
    assert readings == []
    assert missing == {NAME: "inter-similarity needs at least 2 token types, got 1"}

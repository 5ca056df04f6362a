"""The synthetic language: its entropy against sums over all texts, and its frequencies."""

from itertools import product

import numpy as np
import pytest

from isoscope.errors import ConfigError
from isoscope.lab.nursery.language import NOISE, SHIFT, STRONG, WEAK, Language

TINY = [Language(6, each, classes=3) for each in ("zipf", "uniform")]
BOTH = pytest.mark.parametrize("language", TINY, ids=lambda each: each.frequencies)


def chances(language, length):
    """Return the chance of every text of this length, (words,) * length, by the definition."""
    k, words = language.classes, language.words
    within = language.unigram * k
    found = np.zeros((words,) * length)
    for text in product(range(words), repeat=length):
        c = language.class_of[list(text)]
        first = language.stationary[(c[1] - c[0]) % k] / k if length > 1 else 1 / k
        rest = (language.chain[c[t - 1], c[t - 2], c[t]] for t in range(2, length))
        found[text] = first * np.prod([*rest]) * np.prod(within[list(text)])
    return found


def entropy(table):
    seen = table[table > 0]
    return -(seen * np.log(seen)).sum()


@BOTH
def test_the_entropy_rate_is_what_a_longer_text_adds(language):
    tables = {n: chances(language, n) for n in (1, 2, 3, 4)}
    assert all(table.sum() == pytest.approx(1, abs=1e-12) for table in tables.values())
    added = [entropy(tables[n + 1]) - entropy(tables[n]) for n in (1, 2, 3)]
    # the second word knows how frequent increments are; from the third on it is the rate
    assert language.entropy_rate < added[0] < language.unigram_entropy
    assert added[1] == pytest.approx(language.entropy_rate, abs=1e-12)
    assert added[2] == pytest.approx(language.entropy_rate, abs=1e-12)
    assert language.floor(4) == pytest.approx(np.mean(added), abs=1e-12)


@BOTH
def test_it_is_stationary(language):
    table = chances(language, 4)
    for place in range(4):
        others = tuple(each for each in range(4) if each != place)
        assert table.sum(axis=others) == pytest.approx(language.unigram, abs=1e-12)
    pairs = table.sum(axis=(0, 1))
    assert pairs == pytest.approx(table.sum(axis=(2, 3)), abs=1e-12)


@BOTH
def test_masked_words_have_the_least_loss_that_all_texts_give(language):
    table = chances(language, 4)
    mask = np.array([False, True, True, False])
    summed = table.sum(axis=(1, 2))  # of what is seen
    for text in [(0, 1, 2, 3), (5, 5, 0, 1), (4, 2, 2, 0)]:
        alone = table.sum(axis=2)[text[0], text[1], text[3]] / summed[text[0], text[3]]
        other = table.sum(axis=1)[text[0], text[2], text[3]] / summed[text[0], text[3]]
        wanted = -(np.log(alone) + np.log(other)) / 2
        found = language.masked_loss(np.array([text]), mask[None])
        assert found == pytest.approx(wanted, abs=1e-12)


def test_what_there_is_to_learn_does_not_depend_on_frequencies_or_size():
    gains = {
        language.unigram_entropy - language.entropy_rate
        for words in (64, 1024)
        for language in (Language(words, "zipf"), Language(words, "uniform"))
    }
    assert max(gains) - min(gains) < 1e-12
    # log 16, less the entropy of two ways and noise
    ways = np.full(16, NOISE / 16)
    ways[:2] += STRONG, WEAK
    assert max(gains) == pytest.approx(np.log(16) - entropy(ways), abs=0.05)
    assert pytest.approx(1) == STRONG + WEAK + NOISE


def test_frequencies_are_zipf_or_uniform_and_the_structure_is_the_same():
    zipf, uniform = Language(1024, "zipf"), Language(1024, "uniform")
    law = 1 / (np.arange(1, 1025) + SHIFT)
    law /= law.sum()
    assert np.abs(np.log(zipf.unigram / law)).max() < 0.05  # classes have equal mass
    assert np.ptp(uniform.unigram) == pytest.approx(0, abs=1e-15)
    assert np.array_equal(zipf.chain, uniform.chain)
    assert np.array_equal(zipf.class_of, uniform.class_of)
    assert set(np.bincount(zipf.class_of)) == {64}


@pytest.mark.parametrize("frequencies", ["zipf", "uniform"])
def test_samples_are_of_the_language(frequencies):
    language = Language(64, frequencies)
    texts = language.sample(2000, 20, (3,))
    c = language.class_of[texts]
    said = (
        language.chain[c[:, 1:-1], c[:, :-2], c[:, 2:]] * (language.unigram * 16)[texts[:, 2:]]
    )
    losses = -np.log(said)
    error = losses.std() / np.sqrt(losses.size)
    assert losses.mean() == pytest.approx(language.entropy_rate, abs=4 * error)
    counts = np.bincount(texts.ravel(), minlength=64) / texts.size
    assert counts == pytest.approx(language.unigram, abs=0.006)  # four standard deviations
    assert np.array_equal(texts, language.sample(2000, 20, (3,)))
    assert not np.array_equal(texts, language.sample(2000, 20, (4,)))


@pytest.mark.parametrize("words", [16, 33])
def test_classes_have_equally_many_words(words):
    with pytest.raises(ConfigError, match="expected a multiple of 16 words"):
        Language(words)

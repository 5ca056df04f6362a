"""A synthetic language: Zipf or uniform word frequencies, one structure, a known entropy.

Words belong to K classes, 0 to K - 1. From word to word the class moves by an increment, modulo
K, and increments follow a chain: after increment d the next one is

    sigma(d)  with chance STRONG, sigma a fixed permutation: two words are needed to know d,
    1         with chance WEAK: the last word is all one has to know,
    any       with chance NOISE, all alike.

Nothing depends on the class itself, so all classes are equally frequent; increments have the
stationary distribution mu of their chain M. The word is drawn from its class, independent of
everything else. Hence, exactly and for any distribution of words within classes, in nats,

    unigram entropy = log K + mean over classes of H(words of the class),
    entropy rate    = sum over d of mu(d) H(M(d, .)) + the same second term.

What there is to learn is their difference. It depends on neither the size of the vocabulary
nor the frequencies of words: a Zipf and a uniform language differ in frequencies alone.
"""

from functools import cached_property
from math import log
from typing import Literal

import numpy as np

from isoscope.dataclass import dataclass
from isoscope.errors import ConfigError
from isoscope.types import Array

Frequencies = Literal["zipf", "uniform"]
CLASSES = 16
STRONG, WEAK, NOISE = 0.40, 0.50, 0.10
SHIFT = 2.7  # of Mandelbrot's law: the frequency of rank r is proportional to 1 / (r + SHIFT)
STRUCTURE = 18  # the seed of the permutation: one structure for all languages


@dataclass(frozen=True)
class Language:
    """Words 0 to `words` - 1 with a chain of classes behind them."""

    words: int
    frequencies: Frequencies = "zipf"
    classes: int = CLASSES

    def __post_init__(self) -> None:
        if self.words < 2 * self.classes or self.words % self.classes:
            raise ConfigError(
                f"expected a multiple of {self.classes} words, {2 * self.classes} or more, in "
                f"a synthetic language, got {self.words}",
                hint=f"each of {self.classes} classes has as many words: --vocabulary=1024",
                slug="nursery-vocabulary",
            )

    # --- what is known of it --------------------------------------------------------------
    @cached_property
    def class_of(self) -> Array:
        """The class of every word, (words,): as many words in each, of about equal mass.

        The most frequent words are dealt first, each to the class with the least mass so far
        that has room; it is the same for all frequencies.
        """
        mass, room = np.zeros(self.classes), np.full(self.classes, self.words // self.classes)
        found = np.zeros(self.words, dtype=np.int64)
        for rank in range(self.words):
            place = int(np.argmin(np.where(room > 0, mass, np.inf)))
            found[rank] = place
            mass[place] += 1.0 / (rank + 1 + SHIFT)
            room[place] -= 1
        return found

    @cached_property
    def unigram(self) -> Array:
        """The chance of every word, (words,): each class has the same, its words share it."""
        ranks = np.arange(1, self.words + 1)
        raw = 1.0 / (ranks + SHIFT) if self.frequencies == "zipf" else np.ones(self.words)
        mass = np.bincount(self.class_of, raw, self.classes)
        return raw / mass[self.class_of] / self.classes

    @cached_property
    def increments(self) -> Array:
        """The chance of the next increment, (increment, next)."""
        k = self.classes
        found = np.full((k, k), NOISE / k)
        found[:, 1] += WEAK
        sigma = np.random.default_rng([STRUCTURE, k]).permutation(k)
        found[np.arange(k), sigma] += STRONG
        return found

    @cached_property
    def stationary(self) -> Array:
        """How frequent increments are, (classes,): what their chain leaves as it is."""
        k = self.classes
        system = np.vstack([self.increments.T - np.eye(k), np.ones(k)])
        return np.linalg.lstsq(system, np.r_[np.zeros(k), 1.0], rcond=None)[0]

    @cached_property
    def chain(self) -> Array:
        """The chance of the next class, (last, one before, next)."""
        k = np.arange(self.classes)
        last, before, after = k[:, None, None], k[None, :, None], k[None, None, :]
        return self.increments[(last - before) % self.classes, (after - last) % self.classes]

    @property
    def within(self) -> float:
        """The entropy of a word whose class is known, in nats."""
        chances = self.unigram * self.classes
        return float(-(chances * np.log(chances)).sum() / self.classes)

    @property
    def unigram_entropy(self) -> float:
        """The entropy of a word by itself, in nats."""
        return log(self.classes) + self.within

    @property
    def entropy_rate(self) -> float:
        """The entropy of a word given all before it, in nats."""
        given = -(self.increments * np.log(self.increments)).sum(axis=1)
        return float(self.stationary @ given) + self.within

    def floor(self, length: int) -> float:
        """The least mean loss of next words in texts of this length, the first not predicted.

        The second word knows one word before it, and so how frequent increments are.
        """
        alone = float(-(self.stationary * np.log(self.stationary)).sum()) + self.within
        rest = length - 2
        return (alone + rest * self.entropy_rate) / (length - 1)

    # --- texts ----------------------------------------------------------------------------
    def sample(self, texts: int, length: int, seed: tuple[int, ...]) -> Array:
        """Return independent texts, (texts, length), each from anywhere in the chain."""
        rng = np.random.default_rng([*seed])
        k = self.classes
        upto = self.chain.cumsum(axis=2).reshape(k * k, k)
        upto[:, -1] = 1.0
        # One search for all rows at a time: row r of a table stands between r and r + 1.
        next_class = (upto + np.arange(k * k)[:, None]).ravel()
        order = np.argsort(self.class_of, kind="stable")  # words, class after class
        shares = (self.unigram * k)[order].reshape(k, -1).cumsum(axis=1)
        shares[:, -1] = 1.0
        next_word = (shares + np.arange(k)[:, None]).ravel()
        last = rng.integers(k, size=texts)
        before = (last - rng.choice(k, size=texts, p=self.stationary)) % k
        found = np.empty((texts, length), dtype=np.int64)
        for place in range(length):
            rows = last * k + before
            chosen = np.searchsorted(next_class, rows + rng.random(texts), side="right")
            before, last = last, np.minimum(chosen - rows * k, k - 1)
            at = np.searchsorted(next_word, last + rng.random(texts), side="right")
            found[:, place] = order[np.minimum(at, self.words - 1)]
        return found

    def masked_loss(self, texts: Array, masked: Array) -> float:
        """The least mean loss of masked words given all others: exact, by both directions.

        States are pairs of neighbouring classes; a word that is seen has one class, a masked
        one may have any. (Forward and backward sums, as in a hidden Markov model.)
        """
        k, (count, length) = self.classes, texts.shape
        classes = self.class_of[texts]
        seen = np.ones((count, length, k))
        seen[~masked] = np.eye(k)[classes[~masked]]
        # forward[t]: chance of what is seen up to t, by the classes at t - 1 and t
        forward = np.empty((length, count, k, k))
        backward = np.ones((length, count, k, k))
        pairs = self.stationary[(np.arange(k)[None, :] - np.arange(k)[:, None]) % k]
        forward[0] = pairs * seen[:, 0][:, None, :] / k  # and the class before the text
        for t in range(1, length):
            step = np.einsum("nba,abc->nac", forward[t - 1], self.chain)
            forward[t] = step * seen[:, t][:, None, :]
            forward[t] /= forward[t].sum(axis=(1, 2), keepdims=True)
        for t in range(length - 2, -1, -1):
            ahead = backward[t + 1] * seen[:, t + 1][:, None, :]
            backward[t] = np.einsum("nac,abc->nba", ahead, self.chain)
            backward[t] /= backward[t].sum(axis=(1, 2), keepdims=True)
        both = (forward * backward).sum(axis=2)  # (length, texts, class)
        both /= both.sum(axis=2, keepdims=True)
        right = np.take_along_axis(both, classes.T[:, :, None], axis=2)[:, :, 0].T
        within = (self.unigram * k)[texts]
        return float(-(np.log(right) + np.log(within))[masked].mean())

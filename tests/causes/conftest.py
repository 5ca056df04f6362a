"""Planted worlds: documents of tokens whose mean cosine has causes of known size."""

from dataclasses import dataclass

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock, Directions, Reservoir
from isoscope.accumulate.bands import BandCells
from isoscope.accumulate.row_bands import frequency_bands, position_bands
from isoscope.causes import BandedDirections, CloudSums
from isoscope.hashing import named_documents

ROGUE = (3, 17)
TYPES = 5000


@dataclass
class World:
    """Rows, where they stand, and the mean unit vector that was planted for each."""

    rows: np.ndarray
    documents: np.ndarray
    positions: np.ndarray
    tokens: np.ndarray
    sinks: np.ndarray
    planted: np.ndarray

    def block(self, chosen, *, counted=True):
        bands = frequency_bands(np.bincount(self.tokens, minlength=TYPES))
        return ArrayBlock(
            self.rows[chosen],
            named_documents(self.documents)[chosen],
            self.positions[chosen].astype(np.uint64),
            tokens=self.tokens[chosen],
            frequency=bands[self.tokens[chosen]] if counted else None,
        )

    def seen(self, chosen, **how):
        block = self.block(chosen, **how)
        kinds = [kind(block.width) for kind in (Directions, BandCells)]
        for kind in kinds:
            kind.update(block)
        return kinds

    def cloud(self, **how):
        rows = BandedDirections(*self.seen(~self.sinks, **how))
        return CloudSums.of(rows, self.seen(self.sinks)[0] if self.sinks.any() else None)

    def sample(self):
        reservoir = Reservoir(self.rows.shape[1])
        reservoir.update(self.block(~self.sinks))
        return reservoir.finalize()

    @property
    def bands(self):
        """The frequency band and the position band of every row."""
        frequent = frequency_bands(np.bincount(self.tokens, minlength=TYPES))
        return frequent[self.tokens], position_bands(self.positions)

    def truth(self):
        """What the definition gives for the planted means: C, T and shares by name."""
        every, means = self.planted.mean(axis=0), self.planted[~self.sinks]
        frequency, position = (each[~self.sinks] for each in self.bands)
        mean = means.mean(axis=0)
        C, F, P, FP = (
            alike_within(means, labels)
            for labels in (0 * frequency, frequency, position, 100 * frequency + position)
        )
        of_all = {"C": C, "T": FP, "sinks": 1 - C / (every @ every)}
        if not C:
            return of_all
        return of_all | {
            "dimensions": 1 - np.sum(np.delete(mean, ROGUE) ** 2) / C,
            "frequency": ((F - C) + (FP - P)) / 2 / FP,
            "frequency first": (F - C) / FP,
            "frequency last": (FP - P) / FP,
            "frequency alone": (F - C) / F,
            "position": ((P - C) + (FP - F)) / 2 / FP,
            "position first": (P - C) / FP,
            "position last": (FP - F) / FP,
            "position alone": (P - C) / P,
            "mean": C / FP,
        }


def alike_within(means, labels):
    """The sum over cells of the share of rows times the squared length of the mean."""
    cells = [means[labels == each] for each in np.unique(labels)]
    return sum(len(c) / len(means) * c.mean(axis=0) @ c.mean(axis=0) for c in cells)


def planted(mix, *, strength=0.05, width=192, documents=400, length=50, seed=0, ramp=False):
    """A world in which causes along orthogonal directions have these parts of the cosine.

    Frequent tokens, and early positions, have a direction of their own; a sink at the
    beginning of each document has another. Everything else of a row points anywhere.
    """
    rng = np.random.default_rng(seed)
    lengths = rng.integers(length // 2, length * 3 // 2, documents)
    document = np.repeat(np.arange(documents), lengths)
    position = np.concatenate([np.arange(each) for each in lengths])
    n = len(document)
    zipf = 1 / np.arange(1, TYPES + 1)
    token = rng.choice(TYPES, n, p=zipf / zipf.sum())
    frame = rng.normal(size=(width, 4))
    frame[list(ROGUE)] = 0
    axes = dict(
        zip(("mean", "frequency", "position", "sinks"), np.linalg.qr(frame)[0].T, strict=True)
    )
    axes["dimensions"] = np.zeros(width)
    axes["dimensions"][list(ROGUE)] = np.sqrt(0.5)
    sink = (position == 0) & ("sinks" in mix)
    profile = {
        "mean": np.ones(n),
        "dimensions": np.ones(n),
        "frequency": 1 - np.log(token + 1) / np.log(TYPES) if ramp else token < 20,
        "position": 1 - position / position.max() if ramp else position < length // 3,
    }
    rows = np.zeros((n, width))
    for cause, part in mix.items():
        if cause != "sinks":
            pull = np.where(sink, 0.0, profile[cause])
            pull *= np.sqrt(part * strength) / pull.mean()
            rows += np.outer(pull, axes[cause])
    taken = np.vecdot(rows, rows)
    assert taken.max() < 1
    noise = rng.normal(size=rows.shape)
    noise -= (np.vecdot(noise, rows) / np.where(taken > 0, taken, 1))[:, None] * rows
    noise *= (np.sqrt(1 - taken) / np.linalg.norm(noise, axis=1))[:, None]
    rows[sink] = axes["sinks"]
    planted = rows.copy()
    rows[~sink] += noise[~sink]
    rows *= rng.lognormal(size=(n, 1))  # norms have no say in cosines
    return World(rows.astype(np.float32), document, position, token, sink, planted)


@pytest.fixture(scope="session")
def plant():
    return planted

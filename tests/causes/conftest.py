"""Planted worlds: documents of tokens whose mean cosine has causes of known size."""

from dataclasses import dataclass

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock, Directions
from isoscope.accumulate.bands import Bands, Crossing
from isoscope.accumulate.row_bands import frequency_bands
from isoscope.causes import BandedDirections, CloudSums
from isoscope.hashing import named_documents

ROGUE = (3, 17)
TYPES = 5000


@dataclass
class World:
    """Unit rows, where they stand, and the share of each cause in their mean cosine."""

    rows: np.ndarray
    documents: np.ndarray
    positions: np.ndarray
    tokens: np.ndarray
    sinks: np.ndarray
    truth: dict

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
        kinds = [kind(block.width) for kind in (Directions, Bands, Crossing)]
        for kind in kinds:
            kind.update(block)
        return kinds

    def cloud(self, **how):
        rows = BandedDirections(*self.seen(~self.sinks, **how))
        return CloudSums.of(rows, self.seen(self.sinks)[0] if self.sinks.any() else None)


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
    rows, truth = np.zeros((n, width)), {"sinks": float(sink.mean()) ** 2}
    for cause, part in mix.items():
        if cause != "sinks":
            pull = np.where(sink, 0.0, profile[cause])
            pull *= np.sqrt(part * strength) / pull.mean()
            rows += np.outer(pull, axes[cause])
            truth[cause] = pull.mean() ** 2
    taken = np.vecdot(rows, rows)
    assert taken.max() < 1
    noise = rng.normal(size=rows.shape)
    noise *= (np.sqrt(1 - taken) / np.linalg.norm(noise, axis=1))[:, None]
    rows += noise
    rows[sink] = axes["sinks"]
    whole = sum(truth.values())
    truth = {cause: part / whole for cause, part in truth.items() if whole}
    rows *= rng.lognormal(size=(n, 1))  # norms have no say in cosines
    return World(rows.astype(np.float32), document, position, token, sink, truth)


@pytest.fixture(scope="session")
def plant():
    return planted

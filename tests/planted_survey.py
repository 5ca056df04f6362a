"""A survey with planted causes: a common mean, and a sink in every document."""

import numpy as np

from isoscope.accumulate import ArrayBlock, Directions
from isoscope.accumulate.bands import BandCells
from isoscope.accumulate.row_bands import frequency_bands
from isoscope.accumulate.sinks import Sinks
from isoscope.accumulate.sums import SinkRows
from isoscope.accumulate.survey import Survey
from isoscope.hashing import named_documents

KINDS = (Directions, BandCells, Sinks)
WIDTH = 96


def surveyed(site="resid.1", *, seed=0, counted=True, documents=300, length=9):
    """A site with a common mean, and a sink at the beginning of every document."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(WIDTH, 2)))[0].T
    document = np.repeat(np.arange(documents), length)
    position = np.tile(np.arange(length), documents)
    token = rng.integers(0, 50, len(document))
    rows = rng.normal(size=(len(document), WIDTH)) / np.sqrt(WIDTH) + 0.15 * axes[0]
    rows[position == 0] = 100 * axes[1]
    bands = frequency_bands(np.bincount(token))
    survey = Survey()
    for name, chosen in (("ordinary", position > 0), ("special-sink", position == 0)):
        block = ArrayBlock(
            rows[chosen],
            named_documents(document)[chosen],
            position[chosen].astype(np.uint64),
            tokens=token[chosen],
            frequency=bands[token[chosen]] if counted else None,
        )
        if name == "special-sink":
            times = np.linalg.norm(rows[chosen], axis=1)
            block.sinks = SinkRows(times, lambda row: ("<s>", f"<s> document {row}"))
        survey.update((site, name), KINDS, block)
    return survey

"""The causes of a site, from the accumulators of its classes of rows."""

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock, Directions
from isoscope.accumulate.bands import Bands, Crossing, frequency_bands
from isoscope.accumulate.sinks import Sinks
from isoscope.accumulate.sums import SinkRows
from isoscope.accumulate.survey import Survey
from isoscope.causes.site_causes import NO_COUNTS, site_causes
from isoscope.hashing import named_documents

KINDS = (Directions, Bands, Crossing, Sinks)
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


def test_sinks_are_told_from_the_mean_and_named():
    held = surveyed().held
    causes = {each.cause: each for each in site_causes(held, "resid.1", "all", "r")}
    assert causes["sinks"].share == pytest.approx(1 / (1 + (8 * 0.15) ** 2), abs=0.05)
    assert causes["sinks"].detail == "300 of 2700 rows: '<s>' at position 0"
    assert causes["sinks"].named[0]["context"].startswith("<s> document")
    assert causes["mean"].share > 0.45
    assert causes["mean"].warnings == ()


def test_a_variant_without_sinks_has_none():
    held = surveyed().held
    causes = {each.cause: each for each in site_causes(held, "resid.1", "no-sink", "r")}
    assert causes["sinks"].share == pytest.approx(0, abs=1e-12)
    assert causes["sinks"].detail == "there are none"


def test_tokens_that_were_not_counted_are_warned_of():
    causes = site_causes(surveyed(counted=False).held, "resid.1", "all", "r")
    assert "frequency" not in {each.cause for each in causes}
    assert {each.warnings for each in causes} == {(NO_COUNTS,)}

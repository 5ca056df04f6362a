"""Readings of gradients: which groups there are, and other measures as they were."""

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock, Gradients, Tally
from isoscope.accumulate.survey import Survey
from isoscope.study.gradients import CONTROL_GROUPS, VIEWS
from isoscope.study.measure_choice import gradient_measures
from isoscope.study.reading import read_survey


def test_every_measure_of_gradients_is_read_by_group():
    assert set(VIEWS) == set(gradient_measures())
    rows = np.random.default_rng(0).normal(size=(400, 8))
    held = {Tally: Tally(8), Gradients: Gradients(8, np.eye(8, 2))}
    keys = np.arange(400, dtype=np.uint64) // np.uint64(4)
    for each in held.values():
        each.update(ArrayBlock(rows, keys, np.arange(400, dtype=np.uint64)))
    names = (*gradient_measures(), "mean-cosine")
    found, left_out = read_survey(Survey({("grad.0", "all"): held}), names, controls=20)
    groups = {name: {each.group for each in found if each.measure == name} for name in names}
    # no control, no halves, no bands
    assert groups["tangent-energy"] == {"", "direction 1", "direction 2"}
    shares = {each.group: each.value for each in found if each.measure == "tangent-energy"}
    assert shares["direction 1"] + shares["direction 2"] == pytest.approx(shares[""])
    assert groups["tangent-energy-ratio"] == {*CONTROL_GROUPS} - {"shuffled"}
    assert groups["tangent-anisotropy"] == {"", "complement", "random"}
    assert groups["mean-cosine"] == set()
    assert not left_out
    other, _ = read_survey(Survey({("resid.0", "all"): held}), gradient_measures())
    assert other == []

"""Memory is foretold before it is needed."""

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock
from isoscope.accumulate.survey import SECOND_PASS, Survey
from isoscope.hashing import named_documents
from isoscope.study.measure_choice import measure_names
from isoscope.study.reading import kinds_for
from isoscope.study.selection import (
    ROW_CLASSES,
    site_bytes,
)


def held_bytes(width):
    """Return what a site really holds after many documents."""
    rng = np.random.default_rng(0)
    survey = Survey()
    kinds = [kind for kind in kinds_for(measure_names(None)) if kind not in SECOND_PASS]
    for start in (0, 300):
        number = np.repeat(np.arange(start, start + 300), 5)
        rows = rng.normal(size=(1500, width)).astype(np.float32)
        place = np.tile(np.arange(5, dtype=np.uint64), 300)
        survey.update(
            ("x", "ordinary"), kinds, ArrayBlock(rows, named_documents(number), place)
        )
    return sum(array.nbytes for array in survey.to_state()[1].values())


@pytest.mark.parametrize("width", [64, 384])
def test_a_site_takes_about_what_was_foretold(width):
    # these rows are in three of the eighty pairs of bands that there is room for
    assert 0.25 * site_bytes(width) < held_bytes(width) <= 1.1 * site_bytes(width)


def test_a_wide_model_takes_gigabytes():
    assert 33 * ROW_CLASSES * site_bytes(4096) > 15 * 2**30

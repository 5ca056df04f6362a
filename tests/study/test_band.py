"""Readings by band: rows of a band are measured as if there were no others."""

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock, BandCells
from isoscope.accumulate.row_bands import frequency_bands
from isoscope.accumulate.survey import Survey
from isoscope.hashing import named_documents
from isoscope.study.reading import by_band, kinds_for, read_survey

PLACE = ("resid.0", "all")


@pytest.fixture(scope="module")
def block():
    rng = np.random.default_rng(0)
    names = np.repeat(np.arange(40), 12)
    tokens = np.minimum(rng.zipf(1.3, size=len(names)), 3000)
    positions = np.tile(np.arange(12), 40).astype(np.uint64)
    bands = frequency_bands(np.bincount(tokens, minlength=3001))
    rows = rng.normal(size=(len(names), 6)) + (tokens < 3)[:, None]
    return ArrayBlock(
        rows, named_documents(names), positions, tokens=tokens, frequency=bands[tokens]
    )


def cosine(rows):
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    near = units @ units.T
    return near[~np.eye(len(rows), dtype=bool)].mean()


def readings(block, names=("mean-cosine",)):
    survey = Survey()
    survey.update(PLACE, kinds_for(names, causes=True), block)
    return read_survey(survey, names)[0]


def test_every_band_reads_the_pairs_of_its_own_rows(block):
    found = {each.group: each for each in readings(block)}
    assert next(iter(found)) == ""
    expected = {
        "position 0": block.positions == 0,
        "position 4-7": (block.positions >= 4) & (block.positions < 8),
        "frequency 1e-3 to 1e-2": block.frequency == 3,
        "frequency above 1e-2": block.frequency == 4,
    }
    for name, here in expected.items():
        assert found[name].value == pytest.approx(cosine(block.rows[here]), abs=1e-8), (
            name
        )  # sums in float32
        assert found[name].n == here.sum()
        assert found[name].low < found[name].value < found[name].high
        assert (found[name].measure, found[name].site) == ("mean-cosine", "resid.0")


def test_bands_with_a_single_row_are_not_read(block):
    few = ArrayBlock(
        block.rows[:3], block.documents[:3], block.positions[:3], tokens=np.arange(3)
    )
    assert [each.group for each in readings(few)] == [""]


def test_no_other_measure_is_read_by_band(block):
    assert {each.group for each in readings(block, ("norm-spread",))} == {""}


def test_rows_without_tokens_have_bands_of_positions_only(block):
    plain = ArrayBlock(block.rows, block.documents, block.positions)
    groups = {each.group for each in readings(plain)} - {""}
    assert groups and all(group.startswith("position") for group in groups)


def test_too_few_documents_have_no_interval(block):
    bands = BandCells(6)
    part = slice(0, 24)
    bands.update(ArrayBlock(block.rows[part], block.documents[part], block.positions[part]))
    found = by_band(PLACE, bands.finalize().bands(), run="r", d=6)
    assert all(each.low is None for each in found)
    assert found[0].warnings == ("no interval: too few documents",)

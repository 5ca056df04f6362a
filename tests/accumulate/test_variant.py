"""Variants are merges of classes, never subtractions."""

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock, Directions, Moments, Tally
from isoscope.accumulate.survey import (
    CLASSES,
    ORDINARY,
    SINK,
    SPECIAL,
    VARIANTS,
    Survey,
    variants,
)
from isoscope.hashing import named_documents
from isoscope.study.reading import kinds_for, read_survey

KINDS = (Tally, Moments)


def block(rows, name):
    keys = named_documents(np.array([f"{name}-{i // 4}" for i in range(len(rows))]))
    return ArrayBlock(rows, keys, np.arange(len(rows), dtype=np.uint64) % 4)


def parts():
    rng = np.random.default_rng(0)
    return {
        ORDINARY: rng.normal(size=(40, 3)),
        SPECIAL: rng.normal(size=(8, 3)) + 2,
        SINK: rng.normal(size=(4, 3)) + 1e6,
    }


def surveyed():
    survey = Survey()
    for name, rows in parts().items():
        survey.update(("resid.0", name), KINDS, block(rows, name))
    return survey


def by_place(survey):
    """Return what each variant of each site is read from."""
    return {
        (site, variant): here
        for site, alike, here in variants(survey.held)
        for variant in alike
    }


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant_is_the_merge_of_its_classes(variant):
    found = by_place(surveyed())["resid.0", variant]
    rows = np.concatenate([parts()[each] for each in VARIANTS[variant] if each in parts()])
    assert found[Tally].count == len(rows)
    np.testing.assert_allclose(found[Moments].finalize().covariance, np.cov(rows.T), rtol=1e-6)


def test_giants_leave_no_trace_where_they_are_excluded():
    found = by_place(surveyed())["resid.0", "no-sink"]
    rows = np.concatenate([parts()[ORDINARY], parts()[SPECIAL]])
    np.testing.assert_allclose(found[Moments].finalize().covariance, np.cov(rows.T), rtol=1e-12)


def test_reading_variants_leaves_the_classes_alone():
    survey = surveyed()
    before = {place: part[Moments].count for place, part in survey.held.items()}
    list(variants(survey.held))
    assert {place: part[Moments].count for place, part in survey.held.items()} == before


def test_vectors_on_disk_have_one_variant():
    survey = Survey()
    survey.update(("rows", "all"), KINDS, block(parts()[ORDINARY], "a"))
    assert list(by_place(survey)) == [("rows", "all")]


def test_a_variant_without_rows_is_not_there():
    survey = Survey()
    survey.update(("resid.0", SPECIAL), KINDS, block(parts()[SPECIAL], "a"))
    assert [alike for _, alike, _ in variants(survey.held)] == [("all", "no-sink")]


def test_classes_are_disjoint_and_all_of_them_are_the_whole():
    assert VARIANTS["all"] == CLASSES
    assert len(set(CLASSES)) == 4


def test_variants_of_the_same_rows_are_read_once_and_reported_of_each():
    survey, kinds = Survey(), kinds_for(["isoscore"])
    survey.update(("resid.0", ORDINARY), kinds, block(parts()[ORDINARY], "a"))
    survey.update(("resid.0", SPECIAL), kinds, block(parts()[SPECIAL], "b"))
    assert [alike for _, alike, _ in variants(survey.held)] == [
        ("all", "no-sink"),
        ("no-special",),
    ]
    readings = read_survey(survey, ["isoscore"])[0]
    assert [each.variant for each in readings] == ["all", "no-sink", "no-special"]
    assert readings[0].value == readings[1].value != readings[2].value


def test_what_a_second_pass_has_found_stands_beside_the_classes():
    survey = surveyed()
    survey.update(("resid.0", "no-sink"), (Directions,), block(parts()[ORDINARY], "c"))
    found = by_place(survey)["resid.0", "no-sink"]
    assert set(found) == {*KINDS, Directions}

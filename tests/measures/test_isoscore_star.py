"""isoscore-star against the definition: the shrink covariance, written out."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from isoscope.api import measure as iso_measure
from isoscope.errors import ConfigError, TooFewRowsError
from isoscope.measures.isoscore_star import as_published, isoscore_star, shrink
from isoscope.measures.view import Spectrum

numbers = st.integers(-80, 80).map(lambda i: i / 8)
shapes = st.tuples(st.integers(2, 12), st.integers(2, 6))
clouds = shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=numbers))
zetas = st.floats(0, 1)


def by_definition(rows, zeta, stable=None):
    covariance = np.cov(rows.T)
    d = len(covariance)
    stable = np.eye(d) * np.trace(covariance) / d if stable is None else stable
    mixed = (1 - zeta) * covariance + zeta * stable
    values = np.linalg.svd(mixed, compute_uv=False)
    return (values.sum() ** 2 / (values**2).sum() - 1) / (d - 1)


@given(rows=clouds, zeta=zetas)
def test_equals_the_score_of_the_shrunk_covariance(value, rows, zeta):
    assume((rows != rows[0]).any())
    found = value(rows, "isoscore-star", zeta=zeta)
    assert found == pytest.approx(by_definition(rows, zeta), abs=1e-9)


@given(rows=clouds, zeta=zetas)
def test_as_published_the_stable_covariance_is_the_identity(value, rows, zeta):
    assume((rows != rows[0]).any())
    found = value(rows, "isoscore-star", zeta=zeta, as_published=True)
    assert found == pytest.approx(by_definition(rows, zeta, np.eye(rows.shape[1])), abs=1e-9)


def test_the_usual_weight_is_a_fifth(measured):
    rows = np.random.default_rng(1).normal(size=(50, 5)) * np.arange(1, 6)
    reading = measured(rows, "isoscore-star")["isoscore-star"]
    assert reading.value == pytest.approx(by_definition(rows, 0.2))
    assert reading.low < reading.value < reading.high


def test_weight_zero_is_the_plain_score_and_one_is_perfect(measured):
    rows = np.random.default_rng(2).normal(size=(50, 5)) * np.arange(1, 6)
    plain = measured(rows, "isoscore", "isoscore-star", zeta=0.0)
    assert plain["isoscore-star"].value == pytest.approx(plain["isoscore"].value)
    perfect = measured(rows, "isoscore-star", zeta=1.0)["isoscore-star"].value
    assert perfect == pytest.approx(1.0, abs=1e-12)


def test_only_the_published_form_depends_on_scale(value):
    rows = np.random.default_rng(3).normal(size=(400, 8)) * np.arange(1, 9) ** -1.0
    ours = [value(scale * rows, "isoscore-star") for scale in (0.01, 1.0, 10.0)]
    theirs = [
        value(scale * rows, "isoscore-star", as_published=True) for scale in (0.01, 1.0, 10.0)
    ]
    assert ours == pytest.approx([ours[0]] * 3)
    assert theirs[0] > 0.99 > theirs[1] > 0.5 > theirs[2]


def test_a_published_value_says_so(measured):
    rows = np.random.default_rng(4).normal(size=(50, 5))
    reading = measured(rows, "isoscore-star", as_published=True)["isoscore-star"]
    assert "as published, not as isoscope defines it" in reading.warnings


@pytest.mark.parametrize("zeta", [-0.1, 1.1, float("nan")])
def test_a_weight_outside_its_range_is_refused(viewed, zeta):
    seen = viewed(Spectrum, np.random.default_rng(5).normal(size=(50, 5)))
    for compute in (isoscore_star, as_published):
        with pytest.raises(ConfigError, match=f"expected zeta between 0 and 1, got {zeta}"):
            compute(seen, zeta=zeta)


def test_shrinking_keeps_the_trace():
    values = np.array([5.0, 3.0, 1.0])
    np.testing.assert_allclose(shrink(values, 0.5), [4.0, 3.0, 2.0])


def test_one_dimension_and_identical_rows_have_no_score(value):
    with pytest.raises(TooFewRowsError, match="needs at least 2 dimensions, got 1"):
        value(np.arange(9.0)[:, None], "isoscore-star")
    with pytest.raises(TooFewRowsError, match="needs rows that differ, got identical rows"):
        value(np.full((9, 3), 0.1), "isoscore-star")


@pytest.mark.parametrize("zeta", [0.0, 0.2, 0.9])
def test_the_isotropic_level_is_that_of_the_same_zeta(zeta):
    rows = np.random.default_rng(3).normal(size=(300, 60))
    readings = iso_measure(rows, measures=["isoscore-star"], zeta=zeta)
    (level,) = readings.isotropic.values()
    assert readings[0].value == pytest.approx(level, abs=0.01)

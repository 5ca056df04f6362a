"""Student's t against scipy."""

import pytest
from scipy import stats

from isoscope.lab.sweep.student import quantile, two_sided


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 9, 10, 49])
@pytest.mark.parametrize("t", [0.0, 0.1, 1.0, 2.5, 12.0])
def test_the_chance_is_that_of_scipy(freedom, t):
    assert two_sided(t, freedom) == pytest.approx(2 * stats.t.sf(t, freedom), abs=1e-12)
    assert two_sided(-t, freedom) == two_sided(t, freedom)


@pytest.mark.parametrize("freedom", [1, 2, 4, 9, 30])
def test_the_quantile_is_that_of_scipy(freedom):
    assert quantile(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-9)
    assert quantile(freedom, 0.01) == pytest.approx(stats.t.ppf(0.995, freedom), rel=1e-9)


def test_infinity_has_no_chance():
    assert two_sided(float("inf"), 4) == 0.0

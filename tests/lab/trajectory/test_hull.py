"""The hull of planted clouds, against another solver of linear programs and Wendel's sum."""

from math import comb, exp, log

import numpy as np
import pytest
from scipy.optimize import linprog

from isoscope.errors import TooFewRowsError
from isoscope.lab.trajectory.hull import log_outside, origin_in_hull


def contains_origin(rows):
    """The definition: weights that are positive, add up to one and to the origin."""
    n, d = rows.shape
    sides, target = np.vstack([rows.T, np.ones(n)]), np.r_[np.zeros(d), 1.0]
    return linprog(np.zeros(n), A_eq=sides, b_eq=target, method="highs").status == 0


def margin(rows):
    """How far beyond the origin the hull reaches, by another solver."""
    n, d = rows.shape
    mean = rows.mean(axis=0)
    sides = np.vstack([np.c_[rows.T, mean], np.r_[np.ones(n), 0.0]])
    bounds = [(0, None)] * n + [(None, None)]
    target = np.r_[np.zeros(d), 1.0]
    done = linprog(np.r_[np.zeros(n), -1.0], A_eq=sides, b_eq=target, bounds=bounds)
    return -done.fun * np.linalg.norm(mean) / np.sqrt(np.square(rows).sum() / n)


def test_it_agrees_with_another_solver_on_clouds_of_every_kind():
    random = np.random.default_rng(0)
    insides = []
    for _ in range(60):
        d = random.integers(1, 12)
        rows = random.normal(size=(4 * d + random.integers(0, 9), d))
        rows = rows * random.uniform(0.1, 3, d) + random.normal(size=d) * random.uniform(0, 1.5)
        found = origin_in_hull(rows)
        insides.append(found.inside)
        assert found.inside == contains_origin(rows)
        assert found.margin == pytest.approx(margin(rows), abs=1e-6, rel=1e-6)
    assert 10 < sum(insides) < 50


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_a_cone_is_outside_and_a_ball_inside_at_any_scale(scale):
    random = np.random.default_rng(1)
    ball = random.normal(size=(400, 100)).astype(np.float32)
    cone = ball.copy()
    cone[:, 0] = np.abs(cone[:, 0]) + 0.01  # every row has a little of one direction
    assert origin_in_hull(ball * scale).inside
    assert not origin_in_hull(cone * scale).inside


def test_a_single_row_on_the_other_side_can_close_the_hull():
    random = np.random.default_rng(2)
    rows = np.vstack([random.normal(size=(80, 3)) + np.array([6, 0, 0]), [[-1, 0, 0]]])
    assert not origin_in_hull(rows[:80]).inside
    assert origin_in_hull(rows).inside


def test_a_square_reaches_beyond_the_origin_as_far_as_one_can_see():
    square = np.array([[3.0, 1.0], [3.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    rows = np.vstack([square, square])
    size = np.sqrt(np.square(rows).sum() / len(rows))
    assert origin_in_hull(rows).margin == pytest.approx(1 / size)
    rows = rows + np.array([2, 0])
    assert origin_in_hull(rows).margin == pytest.approx(
        -1 / np.sqrt(np.square(rows).sum() / len(rows))
    )


def test_directions_without_rows_do_not_count():
    random = np.random.default_rng(3)
    rows = random.normal(size=(40, 3)) @ random.normal(size=(3, 10))
    found = origin_in_hull(rows)
    assert (found.inside, found.width, found.rows) == (True, 3, 40)
    assert not origin_in_hull(np.tile(rows[:1], (40, 1))).inside


def test_rows_that_are_all_zero_have_the_origin():
    assert origin_in_hull(np.zeros((8, 2))).inside


def test_too_few_rows_are_refused():
    with pytest.raises(TooFewRowsError, match="at least 40 rows, got 39"):
        origin_in_hull(np.ones((39, 10)))


def test_wendel_is_its_sum_and_does_not_underflow():
    for rows, width in [(3, 2), (20, 5), (60, 15), (90, 45)]:
        exact = sum(comb(rows - 1, k) for k in range(width)) / 2 ** (rows - 1)
        assert exp(log_outside(rows, width)) == pytest.approx(exact)
    # 4 d rows: the entropy of a quarter says how fast it vanishes
    rate = log(2) + 0.25 * log(0.25) + 0.75 * log(0.75)
    assert log_outside(4 * 4096, 4096) == pytest.approx(-4 * 4096 * rate, rel=0.01)


def test_isotropic_clouds_have_the_origin_as_often_as_wendel_says():
    random = np.random.default_rng(4)
    d, n = 2, 8
    clouds = random.normal(size=(600, n, d)) * random.lognormal(size=(600, n, 1))
    found = [origin_in_hull(rows) for rows in clouds]
    expected = found[0].wendel
    spread = np.sqrt(expected * (1 - expected) / len(found))
    assert expected == pytest.approx(1 - (1 + 7) / 2**7)
    assert np.mean([each.inside for each in found]) == pytest.approx(expected, abs=3 * spread)

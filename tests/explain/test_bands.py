"""The mean cosine between bands, against pairs enumerated one by one."""

import numpy as np
import pytest

from isoscope.explain.bands import between_frequencies, between_positions, products
from isoscope.explain.cloud import Totals

WIDTH = 24


def totals(rows, frequency, position):
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    sums = [units[frequency == f].sum(axis=0) for f in np.unique(frequency)]
    sums += [units[position == p].sum(axis=0) for p in np.unique(position)]
    crossed = np.zeros((len(np.unique(frequency)), len(np.unique(position))))
    np.add.at(crossed, (frequency, position), 1)
    return units, Totals(np.array(sums), crossed, (units**2).sum(axis=0), np.zeros(WIDTH), 0.0)


@pytest.fixture(scope="module")
def balanced():
    """Every band of frequency at every position equally often: margins are plain means."""
    rng = np.random.default_rng(3)
    frequency, position = np.repeat([0, 1, 2], 120), np.tile([0, 1], 180)
    rows = rng.normal(size=(360, WIDTH))
    rows[:, 0] += 2.0 + frequency
    rows[:, 1] += 3.0 * position
    return frequency, position, *totals(rows, frequency, position)


def test_it_is_the_mean_over_pairs_of_rows_of_two_bands(balanced):
    frequency, _, units, seen = balanced
    table = between_frequencies(seen, products(seen, np.ones(WIDTH, dtype=bool)))
    for f in range(3):
        for g in range(3):
            cosines = units[frequency == f] @ units[frequency == g].T
            expected = cosines.mean() if f != g else cosines[~np.eye(120, dtype=bool)].mean()
            # the noise within a band is taken as that of all rows: off by its excess / 120
            assert table[f, g] == pytest.approx(expected, abs=3e-3)


def test_positions_are_compared_within_two_bands_of_frequency():
    rng = np.random.default_rng(4)
    frequency, position = np.repeat([0, 1], 4000), np.tile([0, 1], 4000)
    rows = rng.normal(size=(8000, WIDTH)) * 0.2
    rows[:, 0] += np.where(frequency == 1, 0.15, 0.0)
    rows[:, 1] += np.where(position == 1, 0.15, 0.0)
    units, seen = totals(rows, frequency, position)
    table = between_positions(seen, products(seen, np.ones(WIDTH, dtype=bool)), (0, 0))
    assert table[0, 0] == pytest.approx(0, abs=0.01)
    late = units[(frequency == 0) & (position == 1)].mean(axis=0)
    assert table[1, 1] == pytest.approx(late @ late, abs=0.02)


def test_dimensions_that_are_not_kept_have_no_part(balanced):
    *_, seen = balanced
    kept = np.ones(WIDTH, dtype=bool)
    kept[:2] = False
    table = between_frequencies(seen, products(seen, kept))
    assert np.abs(table).max() < 0.02
    assert between_frequencies(seen, products(seen, ~kept))[2, 2] > 0.3

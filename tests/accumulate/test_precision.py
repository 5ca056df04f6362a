"""Eigenvalues of float32 rows against those of a float64 covariance, where rows are awkward."""

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock, Moments, merged
from isoscope.accumulate.precision import LEAST, Precision, _is_positive

WIDTH = 96


def white(n=6000, d=WIDTH, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def along(direction, times):
    """Return white rows that are `times` as long in one direction."""
    rows, unit = white(), direction / np.linalg.norm(direction)
    return rows + (times - 1) * np.outer(rows @ unit, unit)


def layer_norm():
    """Return rows as a layer norm with gain and bias leaves them: one direction is gone."""
    rng, rows = np.random.default_rng(1), white() * np.linspace(0.2, 3, WIDTH)
    rows -= rows.mean(axis=1, keepdims=True)
    rows /= rows.std(axis=1, keepdims=True)
    return rows * rng.lognormal(0, 0.5, WIDTH) + rng.standard_normal(WIDTH)


def outlier_dimensions():
    """Return rows like those of some language models: few columns large and far from zero."""
    rows = white()
    rows[:, [3, 40, 90]] *= [330, 900, 1e4]
    rows[:, :5] += [100, 50, 3, 500, 7]
    return rows


def token_rows():
    """Return rows of 70 tokens, each many times, which span fewer dimensions than they have."""
    rng = np.random.default_rng(2)
    return white(70)[rng.zipf(1.3, size=6000) % 70]


def later(rows, start=2000):
    """Return white rows, followed by others."""
    return np.concatenate([white()[:start], rows[start:]])


DIAGONAL = np.ones(WIDTH)
CLOUDS = {
    "white": white,
    "one long column": lambda: along(np.eye(WIDTH)[5], 330),
    "one long direction": lambda: along(DIAGONAL, 330),
    "one very long direction": lambda: along(DIAGONAL, 1e5),
    "long in a few columns": lambda: along(np.arange(WIDTH) < 4, 1e4),
    "outlier dimensions": outlier_dimensions,
    "layer norm": layer_norm,
    "few tokens": token_rows,
    "rank 40": lambda: white(d=40) @ white(40),
    "rank 93": lambda: white(d=93) @ white(93),
    "power law, turned": lambda: (
        white() * np.arange(1.0, WIDTH + 1) ** -2 @ np.linalg.qr(white(WIDTH, seed=3))[0]
    ),
    "graded columns": lambda: white() * np.exp(-np.arange(WIDTH) / 6),
    "long direction later": lambda: later(along(DIAGONAL, 1e4)),
    "rank 40 later": lambda: later(1e4 * white(d=40) @ white(40)),
    "rank 40 before": lambda: later(white(d=40) @ white(40))[::-1],
    "constant columns": lambda: np.where(np.arange(WIDTH) % 7 == 0, 0.1, white()),
    "far away": lambda: along(DIAGONAL, 100) + 1e3,
    "fewer rows than dimensions": lambda: white(60),
    "few more rows than dimensions": lambda: white(110),
}


def summed(rows, size=700, documents=None):
    """Return the moments of rows in blocks of a size, as a stream gives them."""
    moments, origin = Moments(rows.shape[1]), None
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        keys = None if documents is None else documents[part]
        block = ArrayBlock(rows[part], keys, start=start, origin=origin)
        moments.update(block)
        origin = block.origin
    return moments


def eigenvalues(covariance, rank):
    return np.linalg.eigvalsh(covariance)[::-1][:rank]


def agree(found, exact):
    """Check every eigenvalue; those that float64 cannot tell from zero are to stay so."""
    floor = 1e-13 * exact[0] * len(exact)
    there = exact > 1e3 * floor
    np.testing.assert_allclose(found[there], exact[there], rtol=1e-4)
    np.testing.assert_allclose(found[~there], exact[~there], atol=floor, rtol=1e-2)


@pytest.mark.parametrize("size", [101, 6000])
@pytest.mark.parametrize("cloud", CLOUDS)
def test_every_eigenvalue_of_float32_rows_is_right(cloud, size):
    rows = CLOUDS[cloud]().astype(np.float32)
    rank = min(len(rows) - 1, WIDTH)
    exact = eigenvalues(np.cov(rows.T.astype(np.float64)), rank)
    agree(eigenvalues(summed(rows, size).finalize().covariance, rank), exact)


@pytest.mark.parametrize("cloud", CLOUDS)
def test_so_it_is_for_each_half_of_the_documents(cloud):
    rows = CLOUDS[cloud]().astype(np.float32)
    keys = np.random.default_rng(4).integers(2**60, size=len(rows), dtype=np.uint64)
    found = summed(rows, documents=keys).finalize()
    for half, number in zip(found.halves, (0, 1), strict=True):
        own = rows[keys % 2 == number].astype(np.float64)
        rank = min(len(own) - 1, WIDTH)
        exact = eigenvalues(np.cov(own.T), rank)
        agree(eigenvalues(half.scatter / (half.count - 1), rank), exact)


@pytest.mark.parametrize("cloud", CLOUDS)
def test_parts_that_were_summed_elsewhere_merge(cloud):
    rows = CLOUDS[cloud]().astype(np.float32)
    rank = min(len(rows) - 1, WIDTH)
    parts = [summed(part, size=300) for part in np.array_split(rows, 3)]
    back = [Moments.from_state(part.state(), width=WIDTH) for part in parts]
    exact = eigenvalues(np.cov(rows.T.astype(np.float64)), rank)
    agree(eigenvalues(merged(back[::-1]).finalize().covariance, rank), exact)


@pytest.mark.parametrize("cloud", ["layer norm", "long direction later"])
def test_looking_at_sums_between_blocks_changes_no_digit(cloud):
    rows = CLOUDS[cloud]().astype(np.float32)
    once, often = Moments(WIDTH), Moments(WIDTH)
    for part in np.array_split(rows, 8):
        once.update(ArrayBlock(part))
        often.update(ArrayBlock(part))
        often.finalize(), often.state()
    exact = eigenvalues(np.cov(rows.T.astype(np.float64)), WIDTH)
    for each in (once, often):
        agree(eigenvalues(each.finalize().covariance, WIDTH), exact)


@pytest.mark.parametrize("cloud", ["layer norm", "few tokens", "one very long direction"])
def test_plain_float32_products_would_have_lost_them(cloud):
    rows = CLOUDS[cloud]().astype(np.float32)
    rows -= rows.mean(axis=0)
    plain = eigenvalues((rows.T @ rows).astype(np.float64), WIDTH)
    exact = eigenvalues(rows.T.astype(np.float64) @ rows, WIDTH)
    with pytest.raises(AssertionError):
        agree(plain, exact)


class Counted(ArrayBlock):
    """A block that notes how many directions are summed in float64."""

    def __init__(self, rows):
        super().__init__(rows)
        self.asked = []

    def wide_sums(self, axes=None):
        self.asked.append(self.width if axes is None else axes.shape[1])
        return super().wide_sums(axes)


def asked(cloud):
    """Return what each of the blocks of a cloud was asked for."""
    moments, rows = Moments(WIDTH), CLOUDS[cloud]().astype(np.float32)
    blocks = [Counted(part) for part in np.array_split(rows, 6)]
    for block in blocks:
        moments.update(block)
    return [block.asked for block in blocks]


@pytest.mark.parametrize("cloud", ["white", "one long column", "graded columns"])
def test_columns_of_any_size_are_summed_in_float32(cloud):
    assert asked(cloud) == [[]] * 6


def test_the_direction_that_a_layer_norm_takes_away_is_summed_on_its_own():
    assert asked("layer norm") == [[1]] * 6


@pytest.mark.parametrize("cloud", ["rank 40", "one very long direction"])
def test_where_many_directions_are_lost_everything_is_summed_in_float64(cloud):
    assert asked(cloud) == [[WIDTH]] * 6


def test_rows_in_float64_are_summed_once():
    block = Counted(CLOUDS["rank 40"]())
    Moments(WIDTH).update(block)
    assert not block.asked


def test_directions_are_looked_for_when_sums_of_squares_are_four_times_as_large():
    seen = []

    class Looking(Precision):
        def _check(self, parts, squares):
            seen.append(self._rows)
            super()._check(parts, squares)

    moments = Moments(WIDTH)
    moments._precision = Looking()
    rows = np.where(white() > 0, 1, -1).astype(np.float32)  # squares add up alike
    for start in range(0, 6000, 200):
        moments.update(ArrayBlock(rows[start : start + 200], start=start))
    assert seen == [200, 1000, 4200]


@pytest.mark.parametrize("width", [1, 2, 95, 96, 97, 200, 300])
@pytest.mark.parametrize("least", [1e-3, -1e-3])
def test_a_matrix_is_positive_if_its_smallest_eigenvalue_is(width, least):
    rng = np.random.default_rng(width)
    basis = np.linalg.qr(rng.normal(size=(width, width)))[0]
    values = np.r_[least, rng.uniform(0.01, 2, size=width - 1)]
    matrix = (basis * values @ basis.T).astype(np.float32)
    before = matrix.copy()
    assert _is_positive(matrix) == (least > 0) == (np.linalg.eigvalsh(matrix)[0] > 0)
    np.testing.assert_array_equal(matrix, before)


def test_directions_below_the_share_are_found_and_no_others():
    rows = white(20_000)
    rows -= rows.mean(axis=0)
    rows @= np.linalg.inv(np.linalg.cholesky(np.cov(rows.T))).T
    for times, number in ((0.5, 1), (2.0, 0)):
        # two columns whose difference has a share of their squares
        share = times * LEAST
        pair = rows.copy()
        pair[:, 1] = (1 - share) * rows[:, 0] + np.sqrt(1 - (1 - share) ** 2) * rows[:, 1]
        block = Counted(pair.astype(np.float32))
        Moments(WIDTH).update(block)
        assert sum(block.asked) == number

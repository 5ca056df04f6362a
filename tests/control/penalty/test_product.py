"""The product behind spectral penalties, through rows and through columns."""

import pytest
import torch

from isoscope.control.penalty.product import Centred, Shape, scale_and_shift, scatter_of
from isoscope.control.processes import World


def rows(n, d, shift=5.0):
    generator = torch.Generator().manual_seed(n)
    return torch.randn(n, d, generator=generator, dtype=torch.float64) + shift


@pytest.mark.parametrize(
    ("n", "d", "through_rows"), [(30, 4, False), (4, 30, True), (400, 200, False)]
)
def test_either_form_has_the_same_length_and_the_same_product(n, d, through_rows):
    about = Centred.of(rows(n, d), World())
    shape = Shape.of(about, World())
    assert shape.through_rows == through_rows
    scatter = torch.cov(rows(n, d).T) * (n - 1)
    torch.testing.assert_close(scatter_of(about.rows, World()), scatter)
    assert about.trace == pytest.approx(float(scatter.trace()))
    whole = scatter / scatter.trace()
    assert shape.concentration == pytest.approx(float(whole.square().sum()))
    expected = 3 * (about.rows @ whole - 0.25 * about.rows)
    torch.testing.assert_close(shape.times(about.rows, 3.0, 0.25), expected)


def test_given_rows_are_left_as_they_are():
    given = rows(6, 3)
    kept = given.clone()
    Centred.of(given, World())
    assert torch.equal(given, kept)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rounding_is_no_spread(dtype):
    row = rows(1, 50)[0] * 1e3
    same = row.expand(777, 50).to(dtype)
    assert not Centred.of(same, World()).spread
    apart = same + rows(777, 50, 0.0).to(dtype) * 1e-2  # a millionth of the length
    assert Centred.of(apart, World()).spread


def test_what_is_not_finite_has_no_spread():
    for value in (float("nan"), float("inf"), 1e38):
        given = rows(6, 3).float()
        given[2, 1] = value
        assert not Centred.of(given, World()).spread


def test_a_multiple_of_the_identity_is_added_to_a_copy():
    given = torch.ones(2, 2)
    assert scale_and_shift(given, 2.0, 5.0).tolist() == [[7.0, 2.0], [2.0, 7.0]]
    assert given.tolist() == [[1.0, 1.0], [1.0, 1.0]]

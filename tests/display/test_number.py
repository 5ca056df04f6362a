"""The interval decides how many digits are shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope.display.number import count, format_value, short

finite = st.floats(-1e12, 1e12)


@pytest.mark.parametrize(
    ("numbers", "value", "interval"),
    [
        ((0.463123, 0.46102, 0.46523), "0.4631", "[0.4610, 0.4652]"),
        ((312.44, 308.0, 316.81), "312.4", "[308.0, 316.8]"),
        ((31244.0, 30800.0, 31681.0), "31244", "[30800, 31681]"),
        ((0.2, -5.0, 5.0), "0.2", "[-5.0, 5.0]"),
        ((1.2341e-5, 1.2141e-5, 1.2541e-5), "1.234e-05", "[1.214e-05, 1.254e-05]"),
        ((1.234567e8, 1.2e8, 1.3e8), "1.235e+08", "[1.200e+08, 1.300e+08]"),
        ((0.0, -2e-6, 2e-6), "0", "[-2.0e-06, 2.0e-06]"),
        ((0.463123, None, None), "0.4631", ""),
        ((768.0, None, None), "768.0", ""),
        ((0.0, None, None), "0.000", ""),
        ((1.0, 1.0, 1.0), "1.000", "[1.000, 1.000]"),
        ((0.5, 0.5 - 1e-14, 0.5 + 1e-14), "0.5000000", "[0.5000000, 0.5000000]"),
        ((-0.00001, -0.004, 0.004), "0.0000", "[-0.0040, 0.0040]"),
        ((-3.2e-9, None, None), "-3.200e-09", ""),
    ],
)
def test_digits_follow_the_interval(numbers, value, interval):
    assert format_value(*numbers) == (value, interval)


@given(finite, finite, finite)
def test_what_is_shown_is_the_number_to_the_precision_of_its_interval(value, low, high):
    text, interval = format_value(value, low, high)
    half, top = abs(high - low) / 2, max(map(abs, (value, low, high)))
    # Two digits of the half-width, but seven digits in all at most; four without a width.
    slack = max(half / 10, 1e-6 * top if half else 1e-3 * top) + 1e-300
    assert float(text) == pytest.approx(value, abs=slack)
    ends = [float(end) for end in interval.strip("[]").split(", ")]
    assert ends == pytest.approx([low, high], abs=slack)


def test_references_are_short():
    assert [short(x) for x in (1.0, 0.0, -0.0, 768.0, 1 / 3, None)] == [
        "1", "0", "0", "768", "0.3333", "",
    ]  # fmt: skip


def test_counts_have_their_thousands_set_apart():
    assert count(1_000_000) == "1,000,000"

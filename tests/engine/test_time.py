"""Times in words."""

import pytest

from isoscope.engine.time import as_time


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59.4, "59 s"),
        (60, "1 min 0 s"),
        (3599.6, "1 h 0 min"),
        (1e6, "277 h 46 min"),
    ],
)
def test_a_time_has_one_or_two_units(seconds, text):
    assert as_time(seconds) == text

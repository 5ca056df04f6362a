"""Colours: every look can be read."""

import pytest

from isoscope.display.page.theme import INKS, config

GROUNDS = {"light": "#fcfcfa", "dark": "#14161b", "paper": "#ffffff"}


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("look", GROUNDS)
def test_text_and_lines_stand_out_from_the_ground(look):
    ground = GROUNDS[look]
    assert contrast(INKS[look].ink, ground) >= 7  # WCAG AAA, for text
    assert contrast(INKS[look].soft, ground) >= 4.5  # AA
    for colour in (*INKS[look].runs, INKS[look].isotropic):
        assert contrast(colour, ground) >= 3  # AA, for graphics


def test_paper_is_white_and_set_in_type_that_is_embedded():
    assert config("paper")["background"] == "#ffffff"
    assert config("paper")["axis"]["labelFont"] == "Liberation Sans"
    assert config("dark")["background"] is None

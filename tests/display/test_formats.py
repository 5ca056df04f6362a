"""Text and Markdown, letter by letter."""

from dataclasses import replace

import pytest

from isoscope.display import READINGS, Results
from isoscope.display.formats import as_markdown, as_text

TEXT = """\
run notes, site rows, variant all

measure            value           95 % interval  isotropic      n    d  warnings
mean-cosine       0.4631        [0.4610, 0.4652]          0  5,000  768
isoscore         -0.0214      [-0.0301, -0.0102]          1  5,000  768  1 2
participation  1.234e-05  [1.214e-05, 1.254e-05]             5,000  768  2
alpha              1.500                                     5,000  768

1  plain value: biased by more than its interval
2  n < 10 d
left out: twonn: needs at least 3 distinct rows, got 2
"""

MARKDOWN = r"""run notes, site rows, variant all

| measure | value | 95 % interval | isotropic | n | d | warnings |
| :-- | --: | --: | --: | --: | --: | :-- |
| mean-cosine | 0.4631 | [0.4610, 0.4652] | 0 | 5,000 | 768 |  |
| isoscore | -0.0214 | [-0.0301, -0.0102] | 1 | 5,000 | 768 | 1 2 |
| participation | 1.234e-05 | [1.214e-05, 1.254e-05] |  | 5,000 | 768 | 2 |
| alpha | 1.500 |  |  | 5,000 | 768 |  |

1. plain value: biased by more than its interval
2. n &lt; 10 d

- left out: twonn: needs at least 3 distinct rows, got 2
"""


def test_text(readings):
    assert "".join(map(as_text, readings.tables)) == TEXT


def test_markdown(readings):
    assert "".join(map(as_markdown, readings.tables)) == MARKDOWN


@pytest.mark.parametrize(
    "style", ["to_json", "to_markdown", "to_latex", "__str__", "_repr_html_"]
)
def test_no_format_lets_a_control_character_through(hostile, style):
    text = getattr(hostile, style)()
    assert text.replace("\n", "").isprintable()
    if style == "to_json":
        return
    assert "<script" not in text or style in ("__str__", "to_latex")


def test_a_hostile_name_stays_in_its_cell(hostile):
    table = hostile.to_markdown().split("\n\n")[1].splitlines()
    bars = [line.replace("\\|", "").count("|") for line in table]
    assert len(set(bars)) == 1


def test_wide_characters_keep_the_columns_in_line(make):
    readings = Results(
        [make("isoscore", 0.5, run="日本"), make("isoscore", 0.5, run="abcd")], READINGS
    )
    first, second = str(readings).splitlines()[-2:]
    assert first.index("isoscore") + 2 == second.index("isoscore")  # two wide ones before it


def test_no_readings_say_so():
    nothing = Results([], READINGS, left_out=["alpha: needs at least 10 rows, got 2"])
    for text in (str(nothing), nothing.to_markdown()):
        assert text.startswith("no readings")
        assert "alpha: needs at least 10 rows, got 2" in text
    assert nothing.to_json() == ""


def test_a_group_or_step_is_told(make):
    one = make("isoscore", 0.5)
    readings = Results([one, replace(one, group="rare", step=100)], READINGS)
    assert "rare" in str(readings)
    assert "100" in str(readings)

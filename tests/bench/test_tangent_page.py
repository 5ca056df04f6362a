"""The page of gradients says what the committed results say."""

import polars as pl
import pytest


@pytest.fixture
def module(script):
    return script("tangent_page")


def test_the_page_is_made_of_the_results(module):
    text = module.PAGE.read_text()
    assert module.page(text) == text


def test_ratios_are_counted_with_their_intervals(module):
    ratio = {"measure": module.RATIO, "group": "shuffled"}
    ends = [(1.1, 1.3), (0.9, 1.1), (0.5, 0.9), (None, None)]
    found = pl.DataFrame([{**ratio, "low": low, "high": high} for low, high in ends])
    assert module.verdicts(found) == (1, 1, 4)


def test_both_halves_of_training_have_three_checkpoints(module):
    for name in module.SERIES:
        steps = module.readings(name)["step"].unique()
        late = (steps > steps.max() / 2).sum()
        assert min(late, len(steps) - late) >= 3

"""The page of attention heads says what the committed results say."""

import numpy as np
import pytest


@pytest.fixture
def module(script):
    script("real_page")
    return script("heads_page")


def test_the_page_is_made_of_the_results(module):
    text = module.PAGE.read_text()
    assert module.page(text) == text


def test_counts_are_those_of_the_intervals(module):
    frame = module.heads("minilm", "16")
    found = module.of(frame, "query-key-cosine")
    low, high = found["low"].to_numpy(), found["high"].to_numpy()
    neither = ((low <= 0) & (high >= 0)).sum()
    assert module.counts(frame) == ((low > 0).sum(), (high < 0).sum(), neither)
    assert len(found) == 72


def test_ranks_share_ties_and_correlate_as_by_hand(module):
    assert module.rank([3.0, 1.0, 1.0, 2.0]).tolist() == [3.0, 0.5, 0.5, 2.0]
    assert module.spearman([1, 2, 3, 4], [1, 3, 2, 4]) == pytest.approx(0.8)
    assert module.spearman(np.arange(5), -np.arange(5)) == pytest.approx(-1)


def test_shares_have_exact_intervals(module):
    # Clopper and Pearson (1934): 3 of 10 is 6.7 to 65.2 %, 0 of 10 up to 30.8 %
    assert module.share(3, 10) == "30 % [7, 65]"
    assert module.share(0, 10) == "0 % [0, 31]"
    assert module.share(10, 10) == "100 % [69, 100]"
    assert module.share(0, 0) == "–"

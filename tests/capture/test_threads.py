"""Threads: a fixed number inside the block, and the old one after it, come what may."""

import pytest
import torch

from isoscope.capture.runner import threads


def test_the_number_holds_inside_and_comes_back():
    before = torch.get_num_threads()
    with threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def test_it_comes_back_after_an_error_too():
    before = torch.get_num_threads()
    with pytest.raises(KeyError), threads(before + 1):
        raise KeyError
    assert torch.get_num_threads() == before

"""Padding goes to the right, with the value and to the multiple asked for."""

import numpy as np
import torch

from isoscope.capture.feed.base import pad_rows

ROWS = [np.array([1, 2, 3]), np.array([4])]
CPU = torch.device("cpu")


def test_padding_is_on_the_right():
    assert pad_rows(ROWS, fill=9, device=CPU).tolist() == [[1, 2, 3], [4, 9, 9]]


def test_the_length_is_rounded_up():
    assert pad_rows(ROWS, multiple=4, device=CPU).shape == (2, 4)


def test_the_kind_of_number_stays():
    assert pad_rows([np.zeros(2, dtype=bool)], device=CPU).dtype == torch.bool
    assert pad_rows([np.zeros(2, dtype=np.float32)], device=CPU).dtype == torch.float32

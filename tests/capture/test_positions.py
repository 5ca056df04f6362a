"""Rows of a batch fall into four classes, each document for itself."""

import numpy as np
import torch

from isoscope.capture.listener import Positions, sinks
from isoscope.hashing import named_documents

CPU = torch.device("cpu")


def positions(lengths, special=()):
    real = np.zeros((len(lengths), max(lengths)), dtype=bool)
    for row, length in enumerate(lengths):
        real[row, :length] = True
    marked = np.zeros_like(real)
    for place in special:
        marked[place] = True
    keys = named_documents([f"d{i}" for i in range(len(lengths))])
    return Positions(real, marked, keys)


def test_padding_is_in_no_class():
    found = positions([3, 1, 2]).layouts(None, CPU)
    assert list(found) == ["ordinary"]
    assert found["ordinary"].index.tolist() == [0, 1, 2, 3, 6, 7]
    assert found["ordinary"].positions.tolist() == [0, 1, 2, 0, 0, 1]


def test_classes_are_disjoint_and_keep_the_place_in_the_document():
    sink = np.zeros((2, 4), dtype=bool)
    sink[0, 0] = sink[1, 2] = True
    found = positions([4, 3], special=[(0, 0), (1, 0)]).layouts(sink, CPU)
    indices = {name: layout.index.tolist() for name, layout in found.items()}
    assert indices == {
        "ordinary": [1, 2, 3, 5],
        "special": [4],
        "sink": [6],
        "special-sink": [0],
    }
    assert found["sink"].positions.tolist() == [2]


def test_special_positions_in_the_padding_do_not_count():
    found = positions([1, 2], special=[(0, 1)]).layouts(None, CPU)
    assert list(found) == ["ordinary"]


def test_a_sink_is_far_above_the_median_of_its_own_document():
    norms = torch.tensor([[1.0, 1.0, 11.0, 9e9], [100.0, 100.0, 100.0, 100.0]])
    real = torch.tensor([[True, True, True, False], [True] * 4])
    assert sinks(norms, real).tolist() == [[False, False, True, False], [False] * 4]
    assert not sinks(norms, real, times=12.0).any()


def test_nothing_in_the_padding_moves_the_median():
    norms = torch.tensor([[1.0, 2.0, 25.0, torch.nan, torch.inf]])
    real = torch.tensor([[True, True, True, False, False]])
    assert sinks(norms, real).tolist() == [[False, False, True, False, False]]


def test_rows_carry_their_token_and_its_frequency_band():
    made = positions([2, 3], special=[(0, 0)])
    tokens = np.array([[7, 4, 0], [5, 4, 6]])
    bands = np.arange(8, dtype=np.int8) % 3
    made = Positions(made.real, made.special, made.documents, None, tokens, bands)
    found = made.layouts(None, CPU)
    assert found["ordinary"].tokens.tolist() == [4, 5, 4, 6]
    assert found["ordinary"].frequency.tolist() == [1, 2, 1, 0]
    assert found["special"].tokens.tolist() == [7]


def test_positions_that_are_no_tokens_have_none():
    (layout,) = positions([3]).layouts(None, CPU).values()
    assert layout.tokens is None
    assert layout.frequency is None

"""Which state stands for a document, and taking it."""

import pytest
import torch

from isoscope.errors import UnknownNameError
from isoscope.study.model import choose_state, subject_of, take_states


def test_what_stands_for_a_text_is_requested_or_the_models_own(tiny, speaker):
    assert choose_state(subject_of(tiny), "mean", as_pooled=True) == "mean"
    assert choose_state(subject_of(tiny), None, as_pooled=True) == "first"
    assert choose_state(subject_of(speaker), None, as_pooled=True) == "last"
    with pytest.raises(UnknownNameError, match="no place of a state"):
        choose_state(subject_of(tiny), "middle")


def test_a_model_that_pools_by_itself_says_how(minilm):
    assert choose_state(subject_of(minilm), None, as_pooled=True) == "mean"


def test_padding_is_never_taken():
    states = torch.arange(24.0).reshape(2, 4, 3)
    real = torch.tensor([[False, True, True, False], [True, True, True, True]])
    assert torch.equal(take_states(states, real, "first"), states[[0, 1], [1, 0]])
    assert torch.equal(take_states(states, real, "last"), states[[0, 1], [2, 3]])
    mean = torch.stack([states[0, 1:3].mean(0), states[1].mean(0)])
    assert torch.equal(take_states(states, real, "mean"), mean)

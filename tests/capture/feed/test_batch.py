"""A batch gives the marks of each of its stacks, and of no other."""

import pytest
import torch

from isoscope.capture.feed.base import Batch, Marks, Prepared


def everywhere(length):
    real = torch.ones(1, length, dtype=torch.bool)
    return Marks(real, ~real, None)


def test_marks_are_of_the_stack_and_length_requested():
    batch = Batch({}, ("a",), {"enc": everywhere})
    assert batch.marks("enc", 7).real.shape == (1, 7)


def test_a_stack_that_is_not_fed_is_refused():
    with pytest.raises(ValueError, match=r"no stack is called ''; this batch feeds 'enc'"):
        Batch({}, ("a",), {"enc": everywhere}).marks("", 7)


def test_prepared_documents_share_no_marks():
    one, two = (Prepared(name, {}, 2, 2, False) for name in "ab")
    assert one.special is not two.special

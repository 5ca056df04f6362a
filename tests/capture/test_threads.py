"""Threads: a fixed number inside the block, and the old one after it, come what may."""

from threading import Barrier, Thread

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


def test_calls_that_overlap_leave_every_thread_as_it_was():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    both, first_is_out = Barrier(2), Barrier(2)
    left = {}

    def first():
        with threads(1):
            both.wait()
        left["first"] = torch.get_num_threads()
        first_is_out.wait()

    def second():
        both.wait()  # the first is inside
        with threads(2):
            first_is_out.wait()
            left["inside"] = torch.get_num_threads()
        left["second"] = torch.get_num_threads()

    try:
        calls = [Thread(target=each) for each in (first, second)]
        for call in calls:
            call.start()
        for call in calls:
            call.join()
        new = Thread(target=lambda: left.update(new=torch.get_num_threads()))
        new.start()
        new.join()
        assert left == {"first": 3, "inside": 2, "second": 3, "new": 3}
    finally:
        torch.set_num_threads(before)


def test_a_block_inside_a_block_puts_back_the_number_of_that():
    before = torch.get_num_threads()
    with threads(2):
        with threads(1):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == before

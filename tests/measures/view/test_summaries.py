"""Summaries by kind, and views made of them once."""

import numpy as np
import pytest

from isoscope.accumulate import Groups, Moments, Partitions
from isoscope.errors import ConfigError, TooFewRowsError, UndefinedError
from isoscope.measures.view import Spectrum, Summaries


class Counted:
    """A view that counts how often it is made, and may refuse."""

    made = 0
    problem = None

    @classmethod
    def of(cls, _summaries):
        cls.made += 1
        if cls.problem is not None:
            raise cls.problem
        return cls()


@pytest.fixture
def counted():
    return type("Counted", (Counted,), {})


def test_a_view_is_made_once(counted):
    every = Summaries()
    assert every.view(counted) is every.view(counted)
    assert counted.made == 1


@pytest.mark.parametrize("kind", [TooFewRowsError, UndefinedError])
def test_what_kept_a_view_from_being_made_is_remembered(counted, kind):
    counted.problem = kind("there is too little", hint="give more", slug="too-few-rows")
    every = Summaries()
    for _ in range(2):
        with pytest.raises(kind, match="there is too little"):
            every.view(counted)
    assert counted.made == 1


def test_another_problem_is_not_taken_for_an_answer(counted):
    counted.problem = ConfigError("expected a weight, got none", hint="give one", slug="zeta")
    every = Summaries()
    for _ in range(2):
        with pytest.raises(ConfigError):
            every.view(counted)
    assert counted.made == 2


def test_a_summary_that_was_not_kept_is_named(summaries):
    every = summaries(np.random.default_rng(1).normal(size=(9, 3)))
    with pytest.raises(
        TooFewRowsError, match="no partitions were kept, which this measure reads"
    ):
        every.of(Partitions)


def test_a_summary_that_failed_raises_its_error():
    every = Summaries()
    every[Moments] = TooFewRowsError(
        "moments needs more", hint="give more", slug="too-few-rows"
    )
    with pytest.raises(TooFewRowsError, match="moments needs more"):
        every.of(Moments)
    with pytest.raises(TooFewRowsError, match="moments needs more"):
        every.view(Spectrum)


def test_a_summary_is_handed_out_as_it_is(summaries):
    every = summaries(np.random.default_rng(2).normal(size=(9, 3)))
    assert every.of(Groups) is every[Groups]
    assert every.sampled == set()

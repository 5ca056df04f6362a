"""Sites that have the rows of another share its summaries, and still merge as if apart."""

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock, Moments, Reservoir, Tally
from isoscope.accumulate.survey import Survey, same_in_all
from isoscope.hashing import named_documents

KINDS = (Tally, Moments, Reservoir)
A, B, C = "norm.out", "resid.5", "embed"


def part(number, *sites, same=None):
    """Return a survey of sites that all have the rows of this number."""
    rng = np.random.default_rng(number)
    rows = rng.normal(size=(12, 4)) + number
    keys = named_documents(np.repeat([f"{number}-{i}" for i in range(4)], 3))
    survey = Survey(same=dict(same or {}))
    for site in sites:
        block = ArrayBlock(rows, keys, np.tile(np.arange(3, dtype=np.uint64), 4))
        survey.update((site, "ordinary"), KINDS, block)
    return survey


def bits(survey):
    """Return the arrays of every place, under the names of all sites."""
    return {
        (place, kind.__name__, name): array.tobytes()
        for place in survey.places
        for kind, each in survey.part([place]).held[place].items()
        for name, array in each.state().items()
    }


CASES = {
    "both share": [part(0, A, same={B: A}), part(1, A, same={B: A})],
    "the first shares": [part(0, A, same={B: A}), part(1, A, B)],
    "the second shares": [part(0, A, B), part(1, A, same={B: A})],
    "the first has neither": [part(0, C), part(1, A, same={B: A})],
    "the second has neither": [part(0, A, same={B: A}), part(1, C)],
    "the second has one of them": [part(0, A, same={B: A}), part(1, A)],
    "the other way round": [part(0, A, same={B: A}), part(1, B, same={A: B})],
    "nothing yet": [Survey(), part(1, A, same={B: A}), part(2, A, same={B: A})],
}


@pytest.mark.parametrize("case", CASES)
def test_merging_gives_what_sites_apart_give(case):
    whole, apart = Survey(), Survey()
    for each in CASES[case]:
        whole.merge(each)
        own = Survey()
        for site in each.sites:
            own.held.update(each.of_site(site))
        apart.merge(own)
    assert bits(whole) == bits(apart)
    assert set(whole.sites) == set(apart.sites)


def test_what_all_parts_share_stays_shared():
    first, second = CASES["both share"]
    whole = Survey()
    whole.merge(first)
    whole.merge(second)
    assert whole.same == {B: A}
    assert {site for site, _ in whole.held} == {A}


def test_the_parts_are_left_as_they_were():
    first, second = part(0, A, same={B: A}), part(1, A, B)
    before = bits(second)
    first.merge(second)
    assert bits(second) == before
    assert first.held[A, "ordinary"][Tally] is not first.held[B, "ordinary"][Tally]
    first.merge(part(2, A, B))
    assert bits(second) == before


def test_sites_part_in_the_order_in_which_they_were_found():
    names = [f"resid.{number}" for number in range(9)]
    whole = part(0, A, same=dict.fromkeys(names, A))
    whole.merge(part(1, A, *names))
    assert list(whole.sites) == [A, *names]  # files of equal surveys have equal bytes


def test_sites_are_listed_beside_the_one_they_share_with():
    survey = part(0, C, A, same={B: A})
    assert survey.sites == (C, A, B)
    assert survey.places == ((C, "ordinary"), (A, "ordinary"), (B, "ordinary"))
    assert survey.of_site(B)[B, "ordinary"] is survey.held[A, "ordinary"]


def test_a_state_keeps_what_is_shared():
    survey = part(0, A, same={B: A})
    again = Survey.from_state(*survey.to_state())
    assert again.same == {B: A}
    assert bits(again) == bits(survey)


def test_a_site_in_trouble_is_not_shared_any_more():
    survey = part(0, A, same={B: A})
    survey.drop(A, "here")
    survey.drop(B, "here")
    other = part(1, A, same={B: A})
    other.merge(survey)
    assert (other.sites, other.same) == ((), {})
    assert other.trouble == {A: "here", B: "here"}


def test_shared_means_in_every_part_that_has_either():
    shared, apart, neither = part(0, A, same={B: A}), part(0, A, B), part(0, C)
    assert same_in_all([shared, neither, shared]) == {B: A}
    assert same_in_all([shared, apart]) == {}
    assert same_in_all([neither]) == {}

"""Hashes: known values, no collisions, evenly spread, the same in every process."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from isoscope.hashing import (
    GROUPS,
    hash_tuples,
    keyed_documents,
    named_documents,
    numbered_documents,
    ordinal_documents,
    row_digests,
    row_documents,
    splitmix64,
    text_key,
)

SOURCES = Path(__file__).parents[1] / "src"
GOLDEN = 0x9E3779B97F4A7C15
MANY = 1_000_000
keys64 = st.integers(0, 2**64 - 1)


def in_whole_numbers(key):
    """The generator of Steele, Lea and Flood (`steele2014`) in whole numbers of Python."""
    z = (key + GOLDEN) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


@pytest.fixture(scope="module")
def many():
    return ordinal_documents("rows", np.arange(MANY, dtype=np.uint64))


def test_it_is_splitmix64_as_published():
    # The first numbers of the generator seeded with 1234567 and with 0, by its own code.
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    states = [(1234567 + i * GOLDEN) % 2**64 for i in range(3)]
    assert splitmix64(np.array(states, dtype=np.uint64)).tolist() == published
    assert int(splitmix64(np.uint64(0))) == 0xE220A8397B1DCDAF


@given(key=keys64)
def test_it_is_splitmix64_in_whole_numbers(key):
    assert int(splitmix64(np.array([key], dtype=np.uint64))[0]) == in_whole_numbers(key)


@given(parts=st.lists(keys64, min_size=1, max_size=4))
def test_a_tuple_is_hashed_one_round_after_another(parts):
    key = 0
    for part in parts:
        key = in_whole_numbers(key ^ part)
    assert int(hash_tuples(*(np.uint64(part) for part in parts))) == key


def test_a_chain_works_element_by_element():
    positions = np.arange(5, dtype=np.uint64)
    one_by_one = [int(hash_tuples(3, np.uint64(9), np.uint64(i))) for i in range(5)]
    assert hash_tuples(3, np.uint64(9), positions).tolist() == one_by_one


def test_the_order_of_the_parts_counts():
    assert int(hash_tuples(1, 2)) != int(hash_tuples(2, 1))


def test_a_million_rows_have_a_million_keys(many):
    assert len(np.unique(many)) == MANY


def test_a_million_positions_of_one_document_have_a_million_hashes():
    assert len(np.unique(hash_tuples(text_key("a"), np.arange(MANY, dtype=np.uint64)))) == MANY


@pytest.mark.parametrize("modulus", [2, GROUPS, 1024])
def test_the_low_bits_are_evenly_spread(many, modulus):
    counts = np.bincount((many % np.uint64(modulus)).astype(int), minlength=modulus)
    assert stats.chisquare(counts).pvalue > 1e-3  # halves and groups are made of these


def test_the_high_bits_are_evenly_spread(many):
    counts = np.bincount((many >> np.uint64(54)).astype(int), minlength=1024)
    assert stats.chisquare(counts).pvalue > 1e-3  # the reservoir goes by these


def test_neighbours_have_nothing_in_common(many):
    share = many.astype(np.float64) / 2.0**64
    assert abs(np.corrcoef(share[:-1], share[1:])[0, 1]) < 4 / np.sqrt(MANY)


def test_a_number_and_its_digits_are_one_document():
    assert named_documents(np.array([5, 6])).tolist() == named_documents(["5", "6"]).tolist()
    mixed_kinds = np.array(["5", 6], dtype=object)
    assert named_documents(mixed_kinds).tolist() == named_documents([5, 6]).tolist()


def test_every_row_of_a_document_has_its_key():
    keys = named_documents(np.array(["a", "a", "b", "a"]))
    assert keys[0] == keys[1] == keys[3] != keys[2]
    assert keys[0] == hash_tuples(0, text_key("a"))


def test_no_rows_have_no_keys():
    assert named_documents(np.array([], dtype=str)).tolist() == []


def test_seed_and_source_change_every_key():
    ordinals = np.arange(100, dtype=np.uint64)
    first = ordinal_documents("a", ordinals)
    for other in (ordinal_documents("a", ordinals, seed=1), ordinal_documents("b", ordinals)):
        assert not set(first.tolist()) & set(other.tolist())
    assert named_documents(["a"]) != named_documents(["a"], seed=1)


ROWS = np.random.default_rng(0).normal(size=(1000, 40)).astype(np.float32)


def test_a_row_is_known_by_seed_place_and_content():
    places = np.arange(1000, dtype=np.uint64)
    keys = row_documents(ROWS, places)
    others = (
        row_documents(ROWS, places, seed=1),
        row_documents(ROWS, places + np.uint64(1)),
        row_documents(ROWS[::-1], places),
    )
    for other in others:
        assert not set(keys.tolist()) & set(other.tolist())
    np.testing.assert_array_equal(row_documents(ROWS[300:400], places[300:400]), keys[300:400])


def test_equal_rows_at_different_places_have_different_keys():
    keys = row_documents(np.zeros((MANY // 10, 3)), np.arange(MANY // 10, dtype=np.uint64))
    assert len(np.unique(keys)) == MANY // 10


@pytest.mark.parametrize("modulus", [2, GROUPS, 1024])
def test_keys_of_rows_are_evenly_spread(modulus):
    keys = row_documents(np.zeros((MANY // 10, 3)), np.arange(MANY // 10, dtype=np.uint64))
    counts = np.bincount((keys % np.uint64(modulus)).astype(int), minlength=modulus)
    assert stats.chisquare(counts).pvalue > 1e-3


def test_digests_are_of_the_first_numbers_in_single_precision():
    digests = row_digests(ROWS)
    assert len(np.unique(digests)) == 1000
    for same in (ROWS.astype(np.float64), ROWS[:, :16], np.asfortranarray(ROWS)):
        np.testing.assert_array_equal(row_digests(same), digests)
    assert row_digests(np.array([[0.0, 1.0]])) == row_digests(np.array([[-0.0, 1.0]]))
    assert row_digests(np.array([[1e300, 1.0]])) == row_digests(np.array([[np.inf, 1.0]]))
    assert row_digests(np.array([[1.0]])) != row_digests(np.array([[1.0, 1.0]]))


def test_documents_of_a_corpus_are_numbered():
    keys = numbered_documents(np.zeros(100, dtype=np.uint64))
    assert len(np.unique(keys)) == 100
    np.testing.assert_array_equal(numbered_documents(np.zeros(50, dtype=np.uint64)), keys[:50])
    named = np.array([text_key("a")], dtype=np.uint64)
    assert keyed_documents(named, seed=3) == named_documents(["a"], seed=3)


def test_any_text_can_be_a_name():
    names = ["", "a", "a ", "ä", "a\u0308", "\ud800", "日本", "a" * 10_000]
    assert len({int(text_key(name)) for name in names}) == len(names)


def test_the_keys_of_saved_runs_stay_what_they_are():
    # Runs on disk are merged by these: a change would be a change of schema.
    assert int(text_key("a")) == 3405396810240292928
    assert named_documents(["a", 5]).tolist() == [14300560184641484674, 2600352181981347899]
    ordinals = np.arange(2, dtype=np.uint64)
    rows = ordinal_documents("rows", ordinals, seed=7)
    assert rows.tolist() == [2143084662000819623, 15732034694378254322]
    known = row_documents(np.array([[1.0, 2.0], [3.0, 4.0]]), ordinals, seed=7)
    assert known.tolist() == [17408199821494298187, 10055498394811126926]


def test_another_process_with_another_salt_has_the_same_keys():
    code = (
        "from isoscope.hashing import named_documents, text_key\n"
        "print(hash('a') % 1000, int(text_key('a')), *named_documents(['a', 'b', 5]).tolist())"
    )
    said = []
    for salt in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": salt, "PYTHONPATH": str(SOURCES)}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, check=True
        )
        said.append(done.stdout.split())
    assert said[0][0] != said[1][0]  # Python's own hash differs, or this proves nothing
    assert said[0][1:] == said[1][1:]
    ours = [text_key("a"), *named_documents(["a", "b", 5])]
    assert [int(word) for word in said[0][1:]] == [int(key) for key in ours]


def test_types_have_an_order_of_their_own_in_which_no_two_share_a_place():
    from isoscope.hashing import type_hashes

    hashes = type_hashes(np.arange(100_000))
    assert len(np.unique(hashes)) == 100_000
    assert type_hashes(np.array([0, 1])).tolist() == hashes[:2].tolist()
    below = (hashes < np.uint64(2**63)).mean()
    assert below == pytest.approx(0.5, abs=0.01)  # three standard deviations are 0.005

"""The merge tree adds up in one fixed way, however the units come in."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope.store.tree import Node, Tree


class Words:
    """Remembers in which order and grouping it was merged."""

    def __init__(self, text):
        self.text = text

    def merge(self, other):
        self.text = f"({self.text}{other.text})"


def copied(words):
    return Words(words.text)


def grown(order, units):
    tree = Tree(units)
    for unit in order:
        tree.add(unit, Words(chr(97 + unit)))
    return tree


@given(units=st.integers(1, 26), seed=st.integers(0, 10**6))
def test_the_order_of_arrival_does_not_matter(units, seed):
    order = list(range(units))
    random.Random(seed).shuffle(order)
    expected = grown(range(units), units).total(copied).text
    assert grown(order, units).total(copied).text == expected
    assert sorted(expected.replace("(", "").replace(")", "")) == [
        chr(97 + i) for i in range(units)
    ]


def test_halves_are_merged_before_wholes():
    assert grown(range(7), 7).total(copied).text == "((((ab)(cd))(ef))g)"


@given(units=st.integers(0, 20), seed=st.integers(0, 10**6))
def test_what_is_missing_is_what_did_not_come(units, seed):
    rng = random.Random(seed)
    came = [unit for unit in range(units) if rng.random() < 0.6]
    tree = grown(came, units)
    assert list(tree.missing()) == [unit for unit in range(units) if unit not in came]


def test_totals_leave_the_tree_as_it_is():
    tree = grown([0, 1, 2], 4)
    before = {node: words.text for node, words in tree.nodes.items()}
    tree.total(copied)
    assert {node: words.text for node, words in tree.nodes.items()} == before
    tree.add(3, Words("d"))
    assert tree.total(copied).text == "((ab)(cd))"


def test_an_empty_tree_has_no_total():
    assert Tree(3).total(copied) is None


def test_nodes_know_their_units():
    node = Node(2, 3)
    assert node.first == 12
    assert [unit for unit in range(20) if node.covers(unit)] == [12, 13, 14, 15]
    assert node.parent == Node(3, 1)
    assert node.sibling == Node(2, 2)


@pytest.mark.parametrize("level", [0, 1, 5])
def test_siblings_share_a_parent(level):
    node = Node(level, 6)
    assert node.sibling.parent == node.parent
    assert node.sibling.sibling == node

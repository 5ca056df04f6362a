"""The merge tree adds up in one fixed way, however the units come in."""

import random
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope.store.keepers import Node, Tree


def joined(_node, left, right):
    """Remembers in which order and grouping it was merged."""
    return f"({left}{right})"


def grown(order, units):
    tree = Tree(units, joined)
    for unit in order:
        tree.put(Node(0, unit), chr(97 + unit))
    return tree


def total(tree):
    return reduce(lambda left, right: f"({left}{right})", tree.roots)


@given(units=st.integers(1, 26), seed=st.integers(0, 10**6))
def test_the_order_of_arrival_does_not_matter(units, seed):
    order = list(range(units))
    random.Random(seed).shuffle(order)
    expected = total(grown(range(units), units))
    assert total(grown(order, units)) == expected
    assert sorted(expected.replace("(", "").replace(")", "")) == [
        chr(97 + i) for i in range(units)
    ]


def test_halves_are_merged_before_wholes():
    assert total(grown(range(7), 7)) == "((((ab)(cd))(ef))g)"


@given(units=st.integers(0, 20), seed=st.integers(0, 10**6))
def test_what_is_missing_is_what_did_not_come(units, seed):
    rng = random.Random(seed)
    came = [unit for unit in range(units) if rng.random() < 0.6]
    tree = grown(came, units)
    assert list(tree.missing()) == [unit for unit in range(units) if unit not in came]


def test_a_node_that_was_kept_is_merged_when_its_sibling_comes():
    tree = grown([0, 1, 2], 4)
    assert tree.roots == ["(ab)", "c"]
    tree.put(Node(0, 3), "d")
    assert tree.roots == ["((ab)(cd))"]


def test_an_empty_tree_has_no_roots():
    assert Tree(3, joined).roots == []


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


def test_a_merge_that_fails_leaves_neither_half_to_be_counted_again():
    def fail(*_):
        raise KeyboardInterrupt

    tree = Tree(4, fail)
    tree.put(Node(0, 0), "a")
    tree.put(Node(0, 2), "c")
    with pytest.raises(KeyboardInterrupt):
        tree.put(Node(0, 1), "b")
    assert tree.roots == ["c"]
    assert list(tree.missing()) == [0, 1, 3]


def test_a_tree_holds_nodes_of_its_own_units_only():
    tree = Tree(11, joined)
    assert tree.holds(Node(3, 0)) and tree.holds(Node(0, 10))
    assert not any(map(tree.holds, [Node(4, 0), Node(0, 11), Node(1, 5), Node(99, 0)]))

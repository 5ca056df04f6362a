"""The frontier on disk: whole nodes only, nothing left behind."""

import numpy as np
import pytest

from isoscope.accumulate import Block, Tally
from isoscope.store.frontier import Frontier
from isoscope.store.tree import Node
from isoscope.store.unit import Units
from isoscope.survey import Survey

UNITS = Units.of([{"number": number} for number in range(4)])


def survey(rows):
    found = Survey()
    found.update(("rows", "all"), (Tally,), Block(np.ones((rows, 2))))
    return found


@pytest.fixture
def frontier(tmp_path):
    return Frontier(tmp_path / "nodes", UNITS)


def test_a_new_frontier_is_an_empty_tree(frontier):
    assert list(frontier.open().missing()) == [0, 1, 2, 3]


def test_what_was_written_comes_back(frontier):
    tree = frontier.open()
    tree.add(2, survey(3))
    frontier.write(tree)
    again = frontier.open()
    assert list(again.nodes) == [Node(0, 2)]
    assert again.nodes[Node(0, 2)].held["rows", "all"][Tally].count == 3


def test_files_that_a_larger_node_covers_are_deleted(frontier):
    tree = frontier.open()
    tree.add(0, survey(1))
    frontier.write(tree)
    tree.add(1, survey(2))
    frontier.write(tree)
    assert [path.name[:9] for path in frontier.folder.glob("node-*")] == ["node-1-0-"]


def test_a_kill_between_writing_and_deleting_counts_nothing_twice(frontier):
    tree = frontier.open()
    tree.add(0, survey(1))
    frontier.write(tree)
    (small,) = frontier.folder.glob("node-*")
    kept = small.read_bytes()
    tree.add(1, survey(2))
    frontier.write(tree)
    small.write_bytes(kept)  # as if it had not been deleted yet
    again = frontier.open()
    assert list(again.nodes) == [Node(1, 0)]


def test_clearing_removes_the_folder(frontier):
    tree = frontier.open()
    tree.add(0, survey(1))
    frontier.write(tree)
    (frontier.folder / "123-0-0.part").write_bytes(b"half")
    frontier.clear()
    assert not frontier.folder.exists()

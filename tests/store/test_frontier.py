"""The frontier on disk: whole nodes only, nothing left behind."""

import numpy as np
import pytest
from isoscope.store.frontier import MANIFEST, Frontier
from isoscope.store.unit import Units

from isoscope.accumulate import Block, Tally
from isoscope.errors import StoreError
from isoscope.store.state import read_state
from isoscope.store.tree import Node
from isoscope.survey import Survey

UNITS = Units.of([{"number": number} for number in range(4)])


def survey(rows):
    found = Survey()
    found.update(("rows", "all"), (Tally,), Block(np.ones((rows, 2))))
    return found


def count(path):
    return Survey.from_state(*read_state(path)).held["rows", "all"][Tally].count


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "nodes"


def test_a_new_frontier_has_everything_before_it(folder):
    assert Frontier(folder, UNITS).missing() == [0, 1, 2, 3]


def test_what_was_added_comes_back(folder):
    Frontier(folder, UNITS).add(2, survey(3))
    again = Frontier(folder, UNITS)
    assert again.missing() == [0, 1, 3]
    assert count(again.tree.nodes[Node(0, 2)]) == 3


def test_files_that_a_larger_node_covers_are_deleted(folder):
    frontier = Frontier(folder, UNITS)
    frontier.add(0, survey(1))
    frontier.add(1, survey(2))
    assert [path.name[:9] for path in folder.glob("node-*")] == ["node-1-0-"]


def test_a_kill_between_writing_and_deleting_counts_nothing_twice(folder):
    frontier = Frontier(folder, UNITS)
    frontier.add(0, survey(1))
    (small,) = folder.glob("node-*")
    kept = small.read_bytes()
    frontier.add(1, survey(2))
    small.write_bytes(kept)  # as if it had not been deleted yet
    again = Frontier(folder, UNITS)
    assert list(again.tree.nodes) == [Node(1, 0)]
    assert not small.exists()


def test_a_kill_before_two_halves_were_merged_is_made_up_for(folder, tmp_path):
    frontier = Frontier(folder, UNITS)
    frontier.add(0, survey(1))
    other = Frontier(tmp_path / "other", UNITS)
    other.add(1, survey(2))
    (late,) = (tmp_path / "other").glob("node-*")
    late.rename(folder / late.name)
    again = Frontier(folder, UNITS)
    assert list(again.tree.nodes) == [Node(1, 0)]
    assert count(again.tree.nodes[Node(1, 0)]) == 3


def test_the_total_has_all_and_leaves_the_nodes(folder, tmp_path):
    frontier = Frontier(folder, UNITS)
    assert not frontier.total(tmp_path / "none")
    for unit in (0, 1, 2):
        frontier.add(unit, survey(unit + 1))
    assert frontier.total(tmp_path / "total")
    assert count(tmp_path / "total") == 6
    frontier.add(3, survey(10))
    assert frontier.total(tmp_path / "more")
    assert count(tmp_path / "more") == 16


def test_the_manifest_of_another_run_is_refused(folder):
    Frontier(folder, UNITS)
    with pytest.raises(StoreError, match="other units of work"):
        Frontier(folder, Units.of([{"number": 7}]))
    (folder / MANIFEST).write_text("{")
    with pytest.raises(StoreError, match="cannot read"):
        Frontier(folder, UNITS)


def test_clearing_removes_the_folder(folder):
    frontier = Frontier(folder, UNITS)
    frontier.add(0, survey(1))
    (folder / "123-0-0.part").write_bytes(b"half")
    frontier.clear()
    assert not folder.exists()

"""The keeper of summaries: the same bits in memory, through files and after kills."""

import functools
import itertools
import os
import shutil
import weakref
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope.accumulate import ACCUMULATORS, ArrayBlock, Moments, Overlap, Reservoir, Tally
from isoscope.accumulate.survey import SECOND_PASS, Survey
from isoscope.errors import StoreError
from isoscope.hashing import named_documents
from isoscope.store.keepers import Node, SummaryKeeper
from isoscope.store.state import State, StateWriter, write_state

KINDS = (Tally, Moments, Reservoir)
UNITS = 11


def work(unit):
    """Return the summaries of a unit, fresh ones each time."""
    meta, arrays = summaries(unit)
    return Survey.from_state(meta, {name: array.copy() for name, array in arrays.items()})


@functools.cache
def summaries(unit):
    """Return the state of a unit: two sites, of which one has trouble in unit 6."""
    rng = np.random.default_rng(unit)
    survey = Survey(seen={f"file-{unit % 3}": 40})
    for site in ("resid.0", "resid.1") if unit % 2 else ("resid.1", "resid.0"):
        # about zero blocks share an origin, elsewhere each has its own
        rows = rng.normal(size=(40, 6)).astype(np.float32) + (3 if unit % 3 == 0 else 0)
        names = np.repeat([f"{unit}-{i}" for i in range(8)], 5)
        block = ArrayBlock(
            rows, named_documents(names), np.tile(np.arange(5, dtype=np.uint64), 8)
        )
        survey.update((site, "all"), KINDS, block)
    if unit == 6:
        survey.drop("resid.1", "document 6")
    return survey.to_state()


def as_read(survey):
    return Survey.from_state(*survey.to_state())


def merged(first, last):
    """Return units by the definition: halves of the largest power of two, then the rest."""
    if last - first == 1:
        return as_read(work(first))
    size = last - first
    middle = first + (1 << ((size - 1).bit_length() - 1))
    left, right = merged(first, middle), merged(middle, last)
    left.merge(right)
    return as_read(left)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """Return the bytes of the state of 11 units, merged as the definition says: 8 + 2 + 1."""
    whole = merged(0, 8)
    for first, last in ((8, 10), (10, 11)):
        whole.merge(merged(first, last))
        whole = as_read(whole)
    path = tmp_path_factory.mktemp("reference") / "state"
    write_state(path, whole)
    return path.read_bytes()


def bits(state, folder):
    path = folder / "bits"
    for left_behind in (path, folder / "bits.data"):  # by one that was killed
        left_behind.unlink(missing_ok=True)
    state.write(path)
    return path.read_bytes()


def nodes(folder):
    return sorted(path.name for path in folder.glob("node-*"))


def kept(folder, units=UNITS, **options):
    """Return a keeper whose every unit is written at once."""
    return SummaryKeeper(units, folder, patience=0, **options)


orders = st.permutations(range(UNITS))
flushes = st.lists(st.booleans(), min_size=UNITS, max_size=UNITS)


@given(
    order=orders,
    flush=flushes,
    reopen=flushes,
    has_folder=st.booleans(),
    room=st.sampled_from([0, 20_000, 1 << 30]),
)
def test_bits_do_not_depend_on_order_memory_or_files(
    order, flush, reopen, has_folder, room, tmp_path_factory, reference
):
    place = tmp_path_factory.mktemp("keeper")
    folder = place / "nodes" if has_folder else None
    keeper = SummaryKeeper(UNITS, folder, spare=lambda: place, room=room)
    for unit, now, again in zip(order, flush, reopen, strict=True):
        keeper.add(unit, work(unit))
        if now:
            keeper.flush()
        if now and again and has_folder:
            keeper = SummaryKeeper(UNITS, folder, room=room)
    assert keeper.missing() == []
    assert bits(keeper.total(), place) == reference
    shutil.rmtree(place)


def test_every_kind_of_summary_merges_in_memory_as_through_files(tmp_path):
    def full(unit):
        rng = np.random.default_rng(unit)
        survey = Survey()
        for part in range(3):
            rows = rng.normal(size=(40, 6)).astype(np.float32) + unit % 3 - part
            names = np.repeat([f"{unit}-{part}-{i}" for i in range(8)], 5)
            block = ArrayBlock(
                rows, named_documents(names), np.tile(np.arange(5, dtype=np.uint64), 8)
            )
            survey.update(("resid.0", "all"), kinds, block)
        return survey

    kinds = [kind for kind in ACCUMULATORS if kind not in {Overlap, *SECOND_PASS}]
    memory, files = SummaryKeeper(7), kept(tmp_path / "files", 7)
    for keeper in (memory, files):
        for unit in (3, 6, 0, 2, 1, 5, 4):
            keeper.add(unit, full(unit))
    held = len(memory.tree.roots[0].held["resid.0", "all"])
    assert held > 6
    assert bits(memory.total(), tmp_path) == bits(files.total(), tmp_path)


class Killed(BaseException):
    """Stands for a SIGKILL: nothing of the process happens after it."""


class Fate:
    """Lets a process live for some operations on files, then no more."""

    def __init__(self, monkeypatch, lives):
        self.left = lives
        for name in ("rename", "unlink", "open"):
            monkeypatch.setattr(Path, name, self.mortal(getattr(Path, name)))

    def mortal(self, operation):
        def act(*arguments, **options):
            if self.left == 0:
                raise Killed
            self.left -= 1
            return operation(*arguments, **options)

        return act


def test_a_kill_at_any_operation_on_files_changes_nothing(tmp_path, monkeypatch):
    def finish(folder, *units):
        keeper = kept(folder, 5)
        for unit in units or keeper.missing():
            keeper.add(unit, work(unit))
        return bits(keeper.total(), tmp_path)

    monkeypatch.setattr(
        os, "fsync", lambda _: None
    )  # a kill does not need it, the test is slow
    expected = finish(tmp_path / "whole")
    for lives in itertools.count():
        folder = tmp_path / f"after-{lives}"
        with monkeypatch.context() as patch:
            Fate(patch, lives)
            try:
                finish(folder, 3, 2, 4, 0, 1)
                break
            except Killed:
                pass
        assert finish(folder) == expected, lives
    assert lives > 50  # it really was killed at every one of them


def test_a_kill_between_writing_a_node_and_deleting_its_halves_counts_nothing_twice(tmp_path):
    keeper = kept(tmp_path, 4)
    keeper.add(0, work(0))
    (small,) = tmp_path.glob("node-*")
    content = small.read_bytes()
    keeper.add(1, work(1))
    small.write_bytes(content)  # as if it had not been deleted yet
    again = kept(tmp_path, 4)
    assert list(again.tree.nodes) == [Node(1, 0)]
    assert not small.exists()


def test_two_halves_that_were_not_merged_yet_are_merged_on_opening(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    kept(one, 4).add(0, work(0))
    kept(other, 4).add(1, work(1))
    (late,) = other.glob("node-*")
    late.rename(one / late.name)
    assert list(kept(one, 4).tree.nodes) == [Node(1, 0)]
    assert [name[:9] for name in nodes(one)] == ["node-1-0-"]


def test_an_interrupted_merge_in_memory_is_never_counted(tmp_path, monkeypatch):
    keeper = SummaryKeeper(2, tmp_path)
    keeper.add(0, work(0))
    merge = Moments.merge

    def interrupted(self, other):
        merge(self, other)
        raise KeyboardInterrupt

    monkeypatch.setattr(Moments, "merge", interrupted)
    with pytest.raises(KeyboardInterrupt):
        keeper.add(1, work(1))
    monkeypatch.undo()
    keeper.flush()  # as engines do on their way out
    again = SummaryKeeper(2, tmp_path)
    for unit in again.missing():
        again.add(unit, work(unit))
    assert again.total().survey_of("resid.0").held["resid.0", "all"][Tally].count == 80


def test_nothing_is_written_within_a_minute_and_everything_after_it(tmp_path):
    now = [1000.0]
    keeper = SummaryKeeper(UNITS, tmp_path, clock=lambda: now[0])
    for unit in (0, 1, 3):
        keeper.add(unit, work(unit))
    now[0] += 59.9
    keeper.add(5, work(5))
    assert nodes(tmp_path) == []
    now[0] += 0.1
    keeper.add(7, work(7))
    names = [name.rpartition("-")[0] for name in nodes(tmp_path)]
    assert names == ["node-0-3", "node-0-5", "node-0-7", "node-1-0"]
    now[0] += 59.9  # counted from the last writing
    keeper.add(9, work(9))
    assert len(nodes(tmp_path)) == 4


def waiting(folder):
    return sorted(folder.glob("*.part.data"))


def test_what_takes_up_more_than_the_room_waits_in_unfinished_files(tmp_path):
    size = sum(array.nbytes for array in work(0).to_state()[1].values())
    keeper = SummaryKeeper(UNITS, tmp_path, clock=lambda: 0.0, room=3 * size)
    for unit in (0, 2, 4):
        keeper.add(unit, work(unit))
    assert waiting(tmp_path) == []
    keeper.add(8, work(8))
    assert len(waiting(tmp_path)) == 4
    keeper.add(10, work(10))  # what is out of memory takes up none
    assert len(waiting(tmp_path)) == 4
    keeper.add(9, work(9))  # two halves are one
    assert len(waiting(tmp_path)) == 4
    assert nodes(tmp_path) == []
    keeper.flush()
    assert waiting(tmp_path) == []
    assert len(nodes(tmp_path)) == 5


def test_a_unit_that_is_merged_at_once_is_written_once(tmp_path, monkeypatch):
    written = []
    before = StateWriter.__init__
    monkeypatch.setattr(
        StateWriter,
        "__init__",
        lambda self, path: (written.append(path), before(self, path))[1],
    )
    keeper = SummaryKeeper(8, tmp_path, clock=lambda: 0.0, room=0)
    counts = []
    for unit in range(8):
        keeper.add(unit, work(unit))
        counts.append(len(written))
    assert counts == [1, 2, 3, 4, 5, 6, 7, 8]  # with every node of its own it would be 15
    assert len(waiting(tmp_path)) == 1
    assert bits(keeper.total(), tmp_path) == whole_of_eight(tmp_path)


def whole_of_eight(folder):
    path = folder / "eight"
    write_state(path, merged(0, 8))
    return path.read_bytes()


@pytest.mark.parametrize("broken", [1, 3])
def test_a_merge_that_fails_counts_no_unit_twice(tmp_path, monkeypatch, broken):
    keeper = SummaryKeeper(4, tmp_path, patience=0)
    for unit in range(broken):
        keeper.add(unit, work(unit))
    add = StateWriter.add

    def full(self, saved):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(StateWriter, "add", full)
    with pytest.raises(StoreError, match="No space left"):
        keeper.add(broken, work(broken))
    monkeypatch.setattr(StateWriter, "add", add)
    keeper.flush()
    again = SummaryKeeper(4, tmp_path, patience=0)
    for unit in again.missing():
        again.add(unit, work(unit))
    path = tmp_path / "expected"
    write_state(path, merged(0, 4))
    assert bits(again.total(), tmp_path) == path.read_bytes()


def test_what_failed_to_be_put_out_of_memory_leaves_nothing_behind(tmp_path, monkeypatch):
    keeper = SummaryKeeper(UNITS, tmp_path, clock=lambda: 0.0, room=0)

    def full(self, survey):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(StateWriter, "add", full)
    with pytest.raises(StoreError, match="No space left"):
        keeper.add(0, work(0))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("room", [1, 1 << 30])
def test_no_place_of_a_unit_is_in_memory_twice(tmp_path, monkeypatch, room):
    survey = work(1)
    places = [weakref.ref(here[Moments]) for here in survey.held.values()]
    alive, to_state = [], Survey.to_state

    def counted(part):
        alive.append(sum(place() is not None for place in places))
        return to_state(part)

    monkeypatch.setattr(Survey, "to_state", counted)
    SummaryKeeper(UNITS, tmp_path, clock=lambda: 0.0, room=room).add(1, survey)
    assert alive == ([2, 1] if room > 1 else [2, 1, 1])  # beyond the room the first is written
    assert [place() for place in places] == [None, None]


def test_room_and_patience_are_32_megabytes_and_a_minute(tmp_path):
    keeper = SummaryKeeper(1, tmp_path)
    assert (keeper.room, keeper.patience) == (32 << 20, 60)


def test_without_a_folder_it_stays_in_memory(tmp_path, reference):
    def refuse():
        raise AssertionError("nothing had to be written")

    keeper = SummaryKeeper(UNITS, spare=refuse, patience=0)
    for unit in range(UNITS):
        keeper.add(unit, work(unit))
        keeper.flush()
    assert bits(keeper.total(), tmp_path) == reference


def test_without_a_folder_what_is_beyond_the_room_goes_to_the_spare_one(tmp_path, reference):
    spare = tmp_path / "spare"
    spare.mkdir()
    keeper = SummaryKeeper(UNITS, spare=lambda: spare, room=1)
    keeper.add(0, work(0))
    assert len(waiting(spare)) == 1
    for unit in range(1, UNITS):
        keeper.add(unit, work(unit))
    total = keeper.total()
    del keeper  # the state outlives it
    assert bits(total, tmp_path) == reference
    assert total.file(lambda: tmp_path, "again").read_bytes() == reference


def test_few_files_are_kept(tmp_path):
    keeper = kept(tmp_path)
    for unit in range(UNITS):
        keeper.add(unit, work(unit))
        assert len(nodes(tmp_path)) <= 3
    assert [name[:7] for name in nodes(tmp_path)] == ["node-0-", "node-1-", "node-3-"]
    assert not list(tmp_path.glob("*.part*"))


def damaged(path):
    path.write_bytes(path.read_bytes()[:-1] + b"?")


def truncated(path):
    path.write_bytes(path.read_bytes()[:100])


def emptied(path):
    path.write_bytes(b"")


def moved(path):
    path.rename(path.with_name(path.name.replace("node-0-2-", "node-0-9-")))


def renamed_to_a_huge_level(path):
    path.rename(path.with_name(path.name.replace("node-0-2-", "node-99-0-")))


def renamed_beyond_the_last_unit(path):
    path.rename(path.with_name(path.name.replace("node-0-2-", "node-0-11-")))


@pytest.mark.parametrize(
    "harm",
    [damaged, truncated, emptied, moved, renamed_to_a_huge_level, renamed_beyond_the_last_unit],
)
def test_a_file_that_is_not_what_it_says_is_done_again(tmp_path, harm):
    keeper = kept(tmp_path)
    keeper.add(2, work(2))
    keeper.add(5, work(5))
    harm(next(tmp_path.glob("node-0-2-*")))
    again = kept(tmp_path)
    assert again.missing() == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]
    assert len(nodes(tmp_path)) == 1


def test_a_node_of_another_run_or_stage_does_not_count(tmp_path):
    kept(tmp_path, id="one run").add(0, work(0))
    assert 0 not in kept(tmp_path, id="one run").missing()
    assert 0 in kept(tmp_path, id="another run").missing()


def test_what_a_killed_process_left_half_written_is_removed_and_the_rest_is_not(tmp_path):
    tmp_path.mkdir(exist_ok=True)
    for name in ("123-0-0.part", "123-0-0.part.data", "after", "notes.txt"):
        (tmp_path / name).write_bytes(b"half")
    (tmp_path / f"node-0-0-{'0' * 32}.safetensors").mkdir()
    keeper = kept(tmp_path, 2)
    assert keeper.missing() == [0, 1]
    assert sorted(path.name[:9] for path in tmp_path.iterdir()) == [
        "after", "node-0-0-", "notes.txt"
    ]  # fmt: skip


def test_leftovers_of_a_process_with_the_same_id_are_in_nobodys_way(tmp_path, reference):
    keeper = kept(tmp_path)
    for unit in range(UNITS):
        keeper.add(unit, work(unit))
    for name in ("total-0", "total-1", "3-0"):
        for end in ("part", "part.data"):
            (tmp_path / f"{os.getpid()}-{name}.{end}").write_bytes(b"half")
    assert bits(keeper.total(), tmp_path) == reference


def test_another_process_hands_over_and_this_one_adopts(tmp_path, reference):
    driver = kept(tmp_path)
    driver.add(1, work(1))
    for part in ((8, 9, 10), (0,), (2, 3), (5, 6, 7, 4)):
        worker = SummaryKeeper(UNITS, tmp_path, fresh=True)
        assert worker.missing() == list(range(UNITS))  # what others wrote is not looked at
        for unit in part:
            worker.add(unit, work(unit))
        handed = worker.hand_over()
        assert worker.hand_over() == []
        for node, name in handed:
            assert driver.adopt(node, tmp_path / name)
    assert driver.missing() == []
    assert bits(driver.total(), tmp_path) == reference
    assert len(nodes(tmp_path)) == 3


def test_no_units_are_an_empty_state(tmp_path):
    for folder in (None, tmp_path / "nodes"):
        state = SummaryKeeper(0, folder).total()
        assert state.sites == () and state.seen == {} and state.trouble == {}


def test_a_state_reads_the_same_from_memory_and_from_a_file(tmp_path, reference):
    path = tmp_path / "state"
    path.write_bytes(reference)
    keeper = SummaryKeeper(UNITS)
    for unit in range(UNITS):
        keeper.add(unit, work(unit))
    memory, file = keeper.total(), State(path)
    assert memory.digest() == file.digest()
    assert memory.sites == file.sites == ("resid.0",)
    assert memory.trouble == file.trouble == {"resid.1": "document 6"}
    assert memory.seen == file.seen == {"file-0": 160, "file-1": 160, "file-2": 120}
    for site in memory.sites:
        ours, theirs = (each.survey_of(site).to_state()[1] for each in (memory, file))
        assert {name: array.tobytes() for name, array in ours.items()} == {
            name: array.tobytes() for name, array in theirs.items()
        }


@pytest.mark.parametrize(
    "on_file", [(False, False), (True, False), (False, True), (True, True)]
)
def test_a_second_pass_lies_beside_the_first(tmp_path, on_file):
    first, second = Survey(), Survey(trouble={"resid.1": "second"})
    rows = ArrayBlock(np.ones((3, 2)))
    for site in ("resid.0", "resid.1"):
        first.update((site, "all"), (Tally,), rows)
    second.update(("resid.0", "all"), (Moments,), rows)
    states = []
    for number, (survey, filed) in enumerate(zip((first, second), on_file, strict=True)):
        path = tmp_path / f"{number}"
        if filed:
            write_state(path, survey)
        states.append(State(path) if filed else State(survey))
    whole = states[0].overlay(states[1], tmp_path)
    assert whole.sites == ("resid.0",)
    assert whole.trouble == {"resid.1": "second"}
    assert set(whole.survey_of("resid.0").held["resid.0", "all"]) == {Tally, Moments}


def test_a_full_disk_is_an_error_of_ours(tmp_path, monkeypatch):
    keeper = kept(tmp_path)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("isoscope.store.keepers.write_state", full)
    with pytest.raises(StoreError, match="No space left") as caught:
        keeper.add(0, work(0))
    assert caught.value.slug == "store-write"

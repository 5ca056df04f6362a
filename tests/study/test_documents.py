"""Cuts: documents stay whole across chunk borders; rows keep their names and places."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from isoscope.hashing import named_documents, ordinal_documents
from isoscope.study.lanes import whole_documents
from isoscope.types import Chunk


def rows_of(n):
    return np.arange(n, dtype=np.float64)[:, None]


def cuts_of(chunks, seed=0):
    return list(whole_documents(chunks, seed=seed))


@st.composite
def streams(draw):
    lengths = draw(st.lists(st.integers(1, 9), min_size=1, max_size=12))
    names = np.repeat([f"d{i}" for i in range(len(lengths))], lengths)
    sizes = draw(st.lists(st.integers(0, 7), min_size=1, max_size=40))
    return names, [*sizes, len(names)]


def chunks_of(names, sizes, place="f"):
    start = 0
    for size in sizes:
        part = names[start : start + size]
        yield Chunk(rows_of(len(names))[start : start + size], "s", start, part, place=place)
        start += len(part)


@given(stream=streams())
def test_no_document_is_in_two_cuts_and_no_row_is_lost(stream):
    names, sizes = stream
    cuts = cuts_of(chunks_of(names, sizes))
    assert np.concatenate([cut.rows[:, 0] for cut in cuts]).tolist() == list(range(len(names)))
    seen = [set(cut.keys.tolist()) for cut in cuts]
    assert sum(map(len, seen)) == len(set().union(*seen)) == len(set(names))


@given(stream=streams())
def test_keys_positions_and_ordinals_do_not_depend_on_the_cuts(stream):
    names, sizes = stream
    cuts = cuts_of(chunks_of(names, sizes))
    whole = cuts_of(chunks_of(names, [len(names)]))

    def joined(parts, name):
        return np.concatenate([getattr(part, name) for part in parts]).tolist()

    for name in ("keys", "positions", "ordinals", "places"):
        assert joined(cuts, name) == joined(whole, name)
    assert joined(cuts, "keys") == named_documents(names).tolist()


def test_the_last_document_of_a_chunk_waits_for_the_next():
    names = np.array(["a", "a", "b", "b", "b", "c"])
    cuts = cuts_of(chunks_of(names, [3, 3]))
    assert [cut.rows[:, 0].tolist() for cut in cuts] == [[0, 1], [2, 3, 4], [5]]
    assert [cut.positions.tolist() for cut in cuts] == [[0, 1], [0, 1, 2], [0]]


def test_one_document_over_many_chunks_is_one_cut():
    (cut,) = cuts_of(chunks_of(np.array(["a"] * 50), [3] * 20))
    assert len(cut) == 50 and cut.positions.tolist() == list(range(50))


def test_rows_without_documents_pass_chunk_by_chunk():
    chunks = [Chunk(rows_of(3), "s", 0), Chunk(rows_of(2), "s", 3)]
    first, second = cuts_of(chunks, seed=4)
    assert first.positions is None
    expected = ordinal_documents("s", np.arange(3, 5, dtype=np.uint64), seed=4)
    assert second.keys.tolist() == expected.tolist()
    assert second.ordinals.tolist() == [3, 4]


def test_ordinals_of_a_chunk_with_dropped_rows_are_its_own():
    chunk = Chunk(rows_of(3), "s", 0, ordinals=np.array([0, 4, 9]), place="f")
    (cut,) = cuts_of([chunk])
    assert cut.ordinals.tolist() == [0, 4, 9]
    assert cut.keys.tolist() == ordinal_documents("s", cut.ordinals).tolist()


def test_a_part_of_such_a_chunk_keeps_them_too():
    names = np.array(["a", "b", "b"])
    chunk = Chunk(rows_of(3), "s", 0, names, ordinals=np.array([0, 4, 9]))
    assert [cut.ordinals.tolist() for cut in cuts_of([chunk])] == [[0], [4, 9]]


def test_an_empty_chunk_is_passed_over():
    # All its rows may have been dropped by --skip-bad before they came here.
    empty = Chunk(np.zeros((0, 1)), "s", 2, np.array([], dtype=str))
    bare = Chunk(np.zeros((0, 1)), "s", 0)
    names = np.array(["a", "a"])
    before, after = Chunk(rows_of(2), "s", 0, names), Chunk(rows_of(2), "s", 2, names)
    (cut,) = cuts_of([empty, bare, before, empty, after, empty])
    assert len(cut) == 4
    assert cuts_of([empty, bare]) == []


def test_a_document_that_continues_in_another_file_knows_both():
    names = np.array(["a", "a"])
    chunks = [
        Chunk(rows_of(2), "one", 0, names, place="one.npy"),
        Chunk(rows_of(2), "two", 0, names, place="two.npy"),
    ]
    (cut,) = cuts_of(chunks)
    assert cut.places.tolist() == ["one.npy", "one.npy", "two.npy", "two.npy"]
    assert cut.ordinals.tolist() == [0, 1, 0, 1] and cut.positions.tolist() == [0, 1, 2, 3]


def test_numbers_and_digits_name_the_same_document():
    numbers = cuts_of([Chunk(rows_of(2), "s", 0, np.array([5, 5]))])
    digits = cuts_of([Chunk(rows_of(2), "s", 0, np.array(["5", "5"]))])
    assert numbers[0].keys.tolist() == digits[0].keys.tolist()


def test_the_seed_changes_every_key():
    for chunk in (Chunk(rows_of(2), "s", 0), Chunk(rows_of(2), "s", 0, np.array(["a", "b"]))):
        one, other = (np.concatenate([c.keys for c in cuts_of([chunk], s)]) for s in (0, 1))
        assert not set(one.tolist()) & set(other.tolist())


def test_what_waits_is_a_copy_of_its_own():
    # A reader may use the memory of a chunk again once the next one is asked for.
    room = rows_of(4)
    names = np.array(["a", "a", "b", "b"])

    def reader():
        yield Chunk(room, "s", 0, names)
        room[:] = -1
        yield Chunk(rows_of(2), "s", 4, np.array(["b", "c"]))

    cuts = cuts_of(reader())
    assert cuts[1].rows[:, 0].tolist() == [2, 3, 0]


def test_only_some_rows_of_a_cut():
    (cut,) = cuts_of([Chunk(rows_of(4), "s", 0, np.array(["a"] * 4), place="f")])
    some = cut.only(np.array([1, 3]))
    assert len(some) == 2 and some.rows[:, 0].tolist() == [1, 3]
    assert some.positions.tolist() == [1, 3] == some.ordinals.tolist()
    assert some.places.tolist() == ["f", "f"] and len(some.keys) == 2

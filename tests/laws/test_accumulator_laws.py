"""The laws that make merging safe, for every accumulator we ship."""

import inspect
from contextlib import suppress
from functools import wraps

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from isoscope.accumulate import (
    ACCUMULATORS,
    ArrayBlock,
    Neighbourhoods,
    RowNames,
    Vocabulary,
    merged,
)
from isoscope.errors import MergeError, RowError, TooFewRowsError
from isoscope.hashing import named_documents

WIDTH = 3


class FewTypes(Vocabulary):
    """A vocabulary so small that types and occurrences are driven out all the time."""

    def __init__(self, width, types=4, sampled=2, kept=3):
        super().__init__(width, types, sampled, kept)


class FewOccurrences(Neighbourhoods):
    """Neighbourhoods so small that documents are driven out all the time."""

    def __init__(self, width, types=(0, 2, 3, 7), kept=2):
        super().__init__(width, types, kept)


EVERY = (*ACCUMULATORS, FewTypes, FewOccurrences)
every_kind = pytest.mark.parametrize("kind", EVERY, ids=lambda k: k.__name__)


def held_by_every_kind(**drawn):
    """Draw documents once for all kinds; those that break the law are named together.

    To draw them takes as long as all that a kind does with them.
    """

    def of_law(law):
        @wraps(law)
        def check(**given_values):
            broken = {}
            for kind in EVERY:
                try:
                    law(kind=kind, **given_values)
                except Exception as error:
                    broken[kind.__name__] = error
            if broken:
                names = ", ".join(broken)
                raise AssertionError(f"broken by {names}") from next(iter(broken.values()))

        parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in drawn]
        check.__signature__ = inspect.Signature(parameters)
        return given(**drawn)(check)

    return of_law


@st.composite
def stream(draw, part):
    """A list of documents of one to four rows, in three draws: one per number is slow.

    The numbers are multiples of 1/8, whose sums are exact, so that only the order of work can
    differ. They are drawn from few at times: then rows are zero, or equal.
    """
    lengths = [1 + each % 4 for each in draw(st.binary(max_size=14))]
    largest = draw(st.sampled_from([800, 20, 1]))
    size = 2 * WIDTH * sum(lengths)
    drawn = np.frombuffer(draw(st.binary(min_size=size, max_size=size)), "<i2")
    rows = (np.fmod(drawn.astype(np.int64), largest + 1) / 8).reshape(-1, WIDTH)
    cuts = np.split(rows, np.cumsum(lengths)[:-1]) if lengths else []
    return tuple((f"{part}-{number}", each) for number, each in enumerate(cuts))


def streams(parts):
    """Lists of documents, in `parts` pieces, no document in two of them."""
    return st.tuples(*(stream(part) for part in range(parts)))


def block(documents):
    if not documents:
        return ArrayBlock(np.zeros((0, WIDTH)))
    rows = np.concatenate([rows for _, rows in documents])
    names = np.concatenate([[name] * len(rows) for name, rows in documents])
    positions = np.concatenate([np.arange(len(rows)) for _, rows in documents]).astype(
        np.uint64
    )
    keys = named_documents(names)
    # small numbers repeat, and the first number of a row belongs to the row
    tokens = (np.abs(rows[:, 0] * 8).astype(np.int64) * 7 + positions.astype(np.int64)) % 9
    ids = [f"{name}:{place}" for name, place in zip(names, positions, strict=True)]
    row_names = RowNames(ids, None, positions)
    return ArrayBlock(
        rows, keys, positions, tokens=tokens, frequency=tokens % 4, names=row_names
    )


def fed(kind, *parts):
    accumulator = kind(WIDTH)
    for part in parts:
        accumulator.update(block(part))
    return accumulator


def assert_same(left, right):
    ours, theirs = left.state(), right.state()
    assert left.count == right.count
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        if np.array_equal(theirs[name], array):
            continue
        # sketches of groups, sums by pair of bands and scatters of heads are float32 on purpose
        loose = array.dtype == np.float32 and name in ("sketch", "units", "scatter")
        scale = max(1.0, float(np.abs(array[np.isfinite(array)]).max(initial=0.0)))
        np.testing.assert_allclose(
            theirs[name],
            array,
            rtol=1e-5 if loose else 1e-9,
            atol=(1e-5 if loose else 1e-11) * scale,
            err_msg=name,
        )


@held_by_every_kind(parts=streams(4))
def test_cuts_do_not_matter(kind, parts):
    assert_same(fed(kind, *parts), fed(kind, sum(parts, ())))


@held_by_every_kind(parts=streams(2))
def test_merging_is_the_same_as_reading_on(kind, parts):
    a, b = parts
    assert_same(merged([fed(kind, a), fed(kind, b)]), fed(kind, a, b))


@held_by_every_kind(parts=streams(2))
def test_order_does_not_matter(kind, parts):
    a, b = (fed(kind, part) for part in parts)
    assert_same(merged([a, b]), merged([b, a]))


@held_by_every_kind(parts=streams(3))
def test_grouping_does_not_matter(kind, parts):
    x, y, z = (fed(kind, part) for part in parts)
    assert_same(merged([merged([x, y]), z]), merged([x, merged([y, z])]))


@held_by_every_kind(parts=streams(1))
def test_an_empty_peer_changes_nothing(kind, parts):
    (a,) = parts
    assert_same(merged([fed(kind, a), kind(WIDTH)]), fed(kind, a))
    assert_same(merged([kind(WIDTH), fed(kind, a)]), fed(kind, a))


@held_by_every_kind(parts=streams(2))
def test_a_saved_state_continues_as_if_never_saved(kind, parts):
    a, b = parts
    revived = kind.from_state(fed(kind, a).state(), width=WIDTH)
    assert_same(revived, fed(kind, a))
    revived.update(block(b))
    assert_same(revived, fed(kind, a, b))


@held_by_every_kind(parts=streams(2))
def test_merging_leaves_the_peer_alone(kind, parts):
    a, b = parts
    peer = fed(kind, b)
    before = {name: array.copy() for name, array in peer.state().items()}
    fed(kind, a).merge(peer)
    mine = fed(kind, a)
    mine.merge(peer)
    mine.update(block((("later", np.ones((2, WIDTH))),)))
    for name, array in peer.state().items():
        np.testing.assert_array_equal(array, before[name])


@held_by_every_kind(parts=streams(2))
def test_looking_does_not_disturb(kind, parts):
    a, b = parts
    watched = fed(kind, a)
    watched.state()
    with suppress(TooFewRowsError):
        watched.finalize()
    watched.update(block(b))
    assert_same(watched, fed(kind, a, b))


def test_a_law_that_two_kinds_break_names_both():
    @settings(max_examples=1, phases=[Phase.generate], database=None)
    @held_by_every_kind(parts=streams(1))
    def law(kind, parts):
        assert kind not in EVERY[:2], parts

    with pytest.raises(AssertionError, match="broken by") as caught:
        law()
    named = str(caught.value).removeprefix("broken by ").split(", ")
    assert named == [each.__name__ for each in EVERY[:2]]


@every_kind
def test_different_widths_do_not_merge(kind):
    with pytest.raises(MergeError, match=r"cannot merge \w+\(width=3.*width=4"):
        kind(3).merge(kind(4))


@every_kind
def test_different_kinds_do_not_merge(kind):
    other = next(each for each in EVERY if each is not kind)
    with pytest.raises(MergeError, match="cannot merge"):
        kind(3).merge(other(3))


@every_kind
def test_rows_of_another_width_are_refused(kind):
    with pytest.raises(RowError, match="expected vectors of width 3, got width 4"):
        kind(3).update(ArrayBlock(np.ones((2, 4))))

"""The strongest sinks, the same whatever the order and the cuts."""

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock
from isoscope.accumulate.sinks import KEPT, Sinks
from isoscope.accumulate.sums import SinkRows
from isoscope.hashing import named_documents


def sinks(numbers, times, *, tokens=True, quoted=True):
    """A block of one sink in each of some documents."""
    numbers = np.asarray(numbers)
    block = ArrayBlock(
        np.ones((len(numbers), 2)),
        named_documents(numbers),
        (numbers % 3).astype(np.uint64),
        tokens=numbers + 100 if tokens else None,
    )
    block.asked = []

    def quote(row):
        block.asked.append(row)
        return f"word{numbers[row]}", f"before word{numbers[row]} after"

    said = quote if quoted else lambda _row: ("", "")
    block.sinks = SinkRows(np.asarray(times, dtype=np.float64), said)
    return block


@pytest.fixture
def hundred():
    rng = np.random.default_rng(5)
    return rng.permutation(100), np.round(rng.uniform(10, 30, 100))  # many are equal


def test_the_strongest_are_kept_with_word_and_context(feed):
    found = feed(Sinks(2), sinks([4, 7], [12.5, 80.0])).finalize()
    assert found.rows == 2
    assert [each.times for each in found.sinks] == [80.0, 12.5]
    first = found.sinks[0]
    assert (first.position, first.token, first.word) == (1, 107, "word7")
    assert first.context == "before word7 after"


def test_cuts_and_order_do_not_matter_even_where_sinks_tie(hundred, feed):
    numbers, times = hundred
    whole = feed(Sinks(2), sinks(numbers, times)).finalize()
    assert len(whole.sinks) == KEPT and whole.rows == 100
    assert whole.sinks[-1].times >= np.sort(times)[-KEPT]
    cuts = [
        feed(Sinks(2), sinks(numbers[part], times[part]))
        for part in np.split(np.arange(100)[::-1], 10)
    ]
    for other in cuts[1:]:
        cuts[0].merge(other)
    assert cuts[0].finalize() == whole
    revived = Sinks.from_state(cuts[0].state(), width=2)
    assert revived.finalize() == whole


def test_weaker_sinks_are_not_decoded(feed):
    strong, weak = sinks(range(40), [50.0] * 40), sinks(range(50, 90), [11.0] * 40)
    seen = feed(Sinks(2), strong, weak)
    assert weak.asked == []
    assert {each.times for each in seen.finalize().sinks} == {50.0}


def test_long_and_foreign_words_are_cut_between_characters(feed):
    block = sinks([1], [20.0])
    block.sinks = SinkRows(block.sinks.times, lambda _row: ("ü" * 60, "語" * 200 + "\ud800"))
    (sink,) = feed(Sinks(2), block).finalize().sinks
    assert sink.word == "ü" * 24
    assert sink.context == "語" * 64


def test_rows_that_are_no_tokens_have_no_token(feed):
    (sink,) = feed(Sinks(2), sinks([1], [20.0], tokens=False, quoted=False)).finalize().sinks
    assert (sink.token, sink.word, sink.context) == (None, "", "")


def test_blocks_that_are_not_of_sinks_leave_nothing(feed, make_block):
    seen = feed(Sinks(3), make_block(np.ones((4, 3)), [2, 2]))
    assert seen.finalize().sinks == () and seen.finalize().rows == 0
    assert seen.count == 4

"""What was left out is counted by reason, with the first place."""

from isoscope.source.corpus.dropped import Dropped


def test_reasons_are_counted_and_merged():
    one, other = Dropped(), Dropped()
    assert one.lines() == [] and len(one) == 0
    one.add("empty lines", "a, line 3")
    one.add("empty lines", "a, line 9")
    other.add("empty lines", "b, line 1")
    other.add("images", "c.png", 4)
    one.merge(other)
    assert len(one) == 7
    assert one.lines() == [
        "empty lines left out: 3 (first: a, line 3)",
        "images left out: 4 (first: c.png)",
    ]

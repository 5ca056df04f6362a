"""What was asked for, and which part of it decides what is read."""

from isoscope.source.corpus.wanted import Wanted


def test_the_text_column_has_a_default():
    assert Wanted().text == "text" and Wanted(column="body").text == "body"


def test_only_columns_that_were_named_count():
    assert Wanted().columns == []
    assert Wanted("a", "b", "c").columns == ["a", "b", "c"]
    assert Wanted(label="d").columns == ["d"]
    assert Wanted(target="b", label="d").roles == ("text", "b", None, "d")


def test_other_columns_are_another_content():
    stamps = {Wanted().stamp, Wanted("a").stamp, Wanted(target="a").stamp, Wanted(id="a").stamp}
    assert len(stamps) == 4
    assert Wanted("text").stamp == Wanted().stamp == Wanted(skip_bad=True).stamp
    assert Wanted(label="d").stamp == Wanted().stamp  # it is fed to no model

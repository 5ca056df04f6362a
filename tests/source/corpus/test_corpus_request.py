"""What was asked for, and which part of it decides what is read."""

from isoscope.source.corpus.corpus import CorpusRequest


def test_the_text_column_has_a_default():
    assert CorpusRequest().text == "text" and CorpusRequest(column="body").text == "body"


def test_only_columns_that_were_named_count():
    assert CorpusRequest().columns == []
    assert CorpusRequest("a", "b", "c").columns == ["a", "b", "c"]
    assert CorpusRequest(label="d").columns == ["d"]
    assert CorpusRequest(target="b", label="d").roles == ("text", "b", None, "d")


def test_other_columns_are_another_content():
    stamps = {
        CorpusRequest().stamp,
        CorpusRequest("a").stamp,
        CorpusRequest(target="a").stamp,
        CorpusRequest(id="a").stamp,
    }
    assert len(stamps) == 4
    assert (
        CorpusRequest("text").stamp
        == CorpusRequest().stamp
        == CorpusRequest(skip_bad=True).stamp
    )
    assert CorpusRequest(label="d").stamp == CorpusRequest().stamp  # it is fed to no model

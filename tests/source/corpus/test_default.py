"""The text that is read where no corpus is named."""

from importlib.resources import files

from isoscope.source.corpus import open_corpus


def test_it_is_found_as_a_resource_of_the_package_with_its_origin():
    folder = files("isoscope.source.corpus") / "bundled"
    assert (folder / "text.txt").is_file()
    assert "Public domain" in (folder / "README.md").read_text()


def test_documents_are_paragraphs_of_prose():
    corpus = open_corpus(None)
    assert (corpus.kind, corpus.name, corpus.warnings) == ("text", "bundled", [])
    assert 1000 <= len(corpus) <= 2000
    assert [corpus.id(0), corpus.id(1500)] == ["bundled:0", "bundled:1500"]
    words = [len(each.content.split()) for each in corpus]
    assert min(words) >= 40 and max(words) <= 250
    assert len({each.content for each in corpus}) == len(corpus)
    assert sum(len(each.content.encode()) for each in corpus) < 1_000_000


def test_messages_do_not_show_where_the_package_lies():
    assert open_corpus(None).document(3).place == "the bundled text, line 4"


def test_every_part_is_in_it():
    whole = " ".join(each.content for each in open_corpus(None))
    for word in ("fellow citizens", "Soviet", "ROMEO:", "Medicare"):
        assert word in whole
    assert "(Applause" not in whole and "  " not in whole

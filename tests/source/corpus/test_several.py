"""Several corpora, one after another."""

import numpy as np

from isoscope.source.corpus import open_corpus
from isoscope.source.corpus.several import Several


def made(tmp_path, sizes):
    parts = []
    for i, n in enumerate(sizes):
        path = tmp_path / f"{i}.txt"
        path.write_text("".join(f"file {i} line {j}\n\n" for j in range(n)))
        parts.append(open_corpus(path))
    return parts


def test_documents_come_from_the_part_they_are_in(tmp_path):
    parts = made(tmp_path, [1, 3, 2])
    corpus = Several(parts, "all", "here")
    assert len(corpus) == 6 and corpus.kind == "text"
    assert [each.content for each in corpus] == [each.content for p in parts for each in p]
    assert [corpus.id(i) for i in (0, 1, 3, 4)] == ["0.txt:0", "1.txt:0", "1.txt:2", "2.txt:0"]
    np.testing.assert_array_equal(
        corpus.keys(), np.concatenate([part.keys() for part in parts])
    )


def test_warnings_are_added_up(tmp_path):
    (warning,) = Several(made(tmp_path, [1, 3]), "all", "here").warnings
    assert warning.startswith("empty lines left out: 4 (first: ")


def test_the_order_does_not_depend_on_the_order_of_the_parts(tmp_path):
    parts = made(tmp_path, [4, 3, 5])
    one, other = Several(parts, "all", "here"), Several(parts[::-1], "all", "here")
    assert [one.id(int(i)) for i in one.order(2)] == [other.id(int(i)) for i in other.order(2)]


def test_the_fingerprint_has_the_names_and_the_contents(tmp_path):
    parts = made(tmp_path, [2, 2])
    before = Several(parts, "all", "here").fingerprint
    assert Several(parts, "other", "there").fingerprint == before
    parts[0].name = "renamed"
    assert Several(parts, "all", "here").fingerprint != before

"""The laws of every corpus: random access, order, fingerprint, kind."""

import hashlib
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest

from isoscope.errors import SourceError
from isoscope.source.corpus import KINDS, Corpus, Document, open_corpus
from isoscope.source.corpus.corpus import (
    CombinedCorpus,
    CorpusRequest,
    Dropped,
    FileCorpus,
    file_id,
    import_extra,
)


def test_random_access_equals_one_after_another(made, alike):
    where, how = made
    corpus = open_corpus(where, **how)
    n = min(len(corpus), 40)
    forward = [corpus.document(i) for i in range(n)]
    for i in np.random.default_rng(5).permutation(n).tolist():
        assert alike(corpus.document(i), forward[i])
        assert corpus.id(i) == forward[i].id
    assert alike(next(iter(corpus)), forward[0])
    assert len({corpus.id(i) for i in range(len(corpus))}) == len(corpus) > 1


def test_content_is_what_its_kind_promises(made):
    where, how = made
    corpus = open_corpus(where, **how)
    assert corpus.kind in KINDS and corpus.name and corpus.place
    for i in range(min(len(corpus), 10)):
        content = corpus.document(i).content
        if corpus.kind == "text":
            assert isinstance(content, str) and content.strip()
        elif corpus.kind == "tokens":
            assert content.dtype == np.int64 and content.ndim == 1
        elif corpus.kind == "audio":
            assert content.dtype == np.float32 and content.ndim == 1
            assert corpus.document(i).rate == 8000
        else:
            assert content.dtype == np.uint8 and content.shape[2:] == (3,)


def test_ordinals_outside_are_refused(made):
    where, how = made
    corpus = open_corpus(where, **how)
    for ordinal in (-1, len(corpus)):
        with pytest.raises(IndexError):
            corpus.document(ordinal)
        with pytest.raises(IndexError):
            corpus.id(ordinal)


def test_an_order_is_a_permutation_that_its_seed_decides(made):
    where, how = made
    corpus = open_corpus(where, **how)
    order = corpus.order(7)
    assert sorted(order.tolist()) == list(range(len(corpus)))
    np.testing.assert_array_equal(order, open_corpus(where, **how).order(7))
    assert any(corpus.order(seed).tolist() != order.tolist() for seed in range(8, 12))


def test_order_and_fingerprint_do_not_depend_on_where_it_lies(made, tmp_path):
    where, how = made
    before = open_corpus(where, **how)
    names = [before.id(int(i)) for i in before.order(3)]
    stamp = before.fingerprint
    if where is not None and not isinstance(where, list):
        (tmp_path / "here").rename(tmp_path / "there")
        where = tmp_path / "there" / where.relative_to(tmp_path / "here")
    after = open_corpus(where, **how)
    assert [after.id(int(i)) for i in after.order(3)] == names
    assert after.fingerprint == stamp and len(stamp) == 32


class Named(Corpus):
    """Documents that have nothing but ids."""

    def __init__(self, names):

        super().__init__("text", "named", "here")
        self._names = names

    def __len__(self):
        return len(self._names)

    def id(self, ordinal):
        return self._names[self.within(ordinal)]

    def document(self, ordinal):
        return Document(self.id(ordinal), "text")

    def stamp(self):
        return "none"

    @property
    def has_ids(self):
        return True


def test_the_order_of_ids_does_not_depend_on_the_order_they_come_in():
    names = [f"doc {i}" for i in range(500)]
    shuffled = np.random.default_rng(1).permutation(names).tolist()
    for seed in (0, 1, 2**63 - 1, -5):
        one, other = Named(names), Named(shuffled)
        ordered = [one.id(int(i)) for i in one.order(seed)]
        assert ordered == [other.id(int(i)) for i in other.order(seed)]
        # Whoever is left keeps the order: a sample of a larger corpus stays a sample.
        few = Named(names[::3])
        assert [few.id(int(i)) for i in few.order(seed)] == [
            each for each in ordered if each in set(names[::3])
        ]


def test_orders_of_different_seeds_have_little_in_common():
    corpus = Named([f"doc {i}" for i in range(2000)])
    place = np.argsort(corpus.order(0)), np.argsort(corpus.order(1))
    assert abs(np.corrcoef(*place)[0, 1]) < 0.1
    assert abs(np.corrcoef(place[0], np.arange(2000))[0, 1]) < 0.1


def test_keys_are_hashes_that_every_machine_computes_alike():
    digest = hashlib.blake2b("läuft".encode(), digest_size=8).digest()
    corpus = Named(["läuft", "\udcff", "\udcfe"])
    assert corpus.keys()[0] == int.from_bytes(digest, "little")
    assert len(set(corpus.keys().tolist())) == 3


def test_what_is_not_known_is_empty():
    document = Document("a:0", "text")
    assert (document.target, document.rate, document.place) == (None, 0, "")


def test_it_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        Document("a:0", "text").id = "b"


def test_reasons_are_counted_and_merged():
    one, other = Dropped(), Dropped()
    assert one.lines() == [] and len(one) == 0
    one.add("empty lines", "a, line 3")
    one.add("empty lines", "a, line 9")
    other.add("empty lines", "b, line 1")
    other.add("images", "c.png", 4)
    one.merge(other)
    assert one.lines() == [
        "empty lines skipped: 3 (first: a, line 3)",
        "images skipped: 4 (first: c.png)",
    ]


def made(tmp_path, sizes):
    parts = []
    for i, n in enumerate(sizes):
        path = tmp_path / f"{i}.txt"
        path.write_text("".join(f"file {i} line {j}\n\n" for j in range(n)))
        parts.append(open_corpus(path))
    return parts


def test_documents_come_from_the_part_they_are_in(tmp_path):
    parts = made(tmp_path, [1, 3, 2])
    corpus = CombinedCorpus(parts, "all", "here")
    assert len(corpus) == 6 and corpus.kind == "text"
    assert [each.content for each in corpus] == [each.content for p in parts for each in p]
    assert [corpus.id(i) for i in (0, 1, 3, 4)] == ["0.txt:0", "1.txt:0", "1.txt:2", "2.txt:0"]
    assert len(set(corpus.keys().tolist())) == 6


def test_warnings_are_added_up(tmp_path):
    (warning,) = CombinedCorpus(made(tmp_path, [1, 3]), "all", "here").warnings
    assert warning.startswith("empty lines skipped: 4 (first: ")


def test_ids_of_a_column_are_known_whatever_the_order_of_the_parts(tmp_path):
    parts = []
    for part in range(3):
        path = tmp_path / f"{part}.jsonl"
        lines = (f'{{"text": "line {i}", "key": "{part}-{i}"}}\n' for i in range(part + 3))
        path.write_text("".join(lines))
        parts.append(open_corpus(path, column="text", id="key"))
    one, other = (
        CombinedCorpus(parts, "all", "here"),
        CombinedCorpus(parts[::-1], "all", "here"),
    )
    assert [one.id(int(i)) for i in one.order(2)] == [other.id(int(i)) for i in other.order(2)]


def test_the_fingerprint_has_the_contents_in_their_order_and_no_names(tmp_path):
    parts = made(tmp_path, [2, 3])
    before = CombinedCorpus(parts, "all", "here").fingerprint
    parts[0].name = "renamed"
    assert CombinedCorpus(parts, "other", "there").fingerprint == before
    assert CombinedCorpus(parts[::-1], "all", "here").fingerprint != before


def test_documents_without_ids_are_known_by_order_and_content(made):
    where, how = made
    corpus = open_corpus(where, **how)
    keys = corpus.keys()
    assert len(set(keys.tolist())) == len(corpus)
    assert corpus.has_ids == ("id" in how) or corpus.name == "bundled"
    assert corpus.has_ids or len(corpus.digests()) == len(corpus)
    np.testing.assert_array_equal(open_corpus(where, **how).keys(), keys)


def test_equal_documents_have_equal_digests_and_different_keys():
    corpus = open_corpus(["one", "two", "one"])
    first, second, third = corpus.digests().tolist()
    assert first == third != second
    assert len(set(corpus.keys().tolist())) == 3


def test_a_file_a_list_and_a_folder_of_the_same_texts_have_the_same_keys(tmp_path):
    texts = [f"text {i} über alles" for i in range(5)]
    (tmp_path / "lines.txt").write_text("\n".join(texts) + "\n")
    (tmp_path / "folder").mkdir()
    for i, text in enumerate(texts):
        start = b"\xef\xbb\xbf" if i == 2 else b""
        (tmp_path / "folder" / f"{i}.txt").write_bytes(start + text.encode())
    listed = open_corpus(texts).keys()
    for other in (tmp_path / "lines.txt", tmp_path / "folder"):
        np.testing.assert_array_equal(open_corpus(other).keys(), listed)


def test_equal_texts_at_equal_places_of_two_files_are_two_documents(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text('{"text": "the same"}\n{"text": "too"}\n')
    corpus = open_corpus(tmp_path)
    assert len(set(corpus.keys().tolist())) == len(corpus) == 4


class Plain(FileCorpus):
    def check(self, path):
        return "dropped" if path.name == "dropped" else None

    def document(self, ordinal):
        return Document(self.id(ordinal), self.path(ordinal).read_bytes())


@pytest.fixture
def paths(tmp_path):
    (tmp_path / "sub").mkdir()
    found = [tmp_path / "a", tmp_path / "sub" / "a"]
    for i, path in enumerate(found):
        path.write_text(f"content {i}")
    return found


def test_a_document_is_named_as_its_file_below_the_folder(tmp_path, paths):
    corpus = Plain("text", paths, tmp_path, CorpusRequest())
    assert [each.id for each in corpus] == ["a", "sub/a"]
    assert (corpus.name, corpus.place) == (tmp_path.name, str(tmp_path))
    assert len(corpus) == 2 and corpus.path(1) == paths[1]


def test_files_that_a_check_rejects_are_dropped_and_counted(tmp_path, paths):
    corpus = Plain("text", [tmp_path / "dropped", *paths], tmp_path, CorpusRequest())
    assert len(corpus) == 2 and "dropped" in corpus.warnings[0]


def test_a_file_alone_is_named_as_it_is(paths):
    corpus = Plain("text", paths[1:], None, CorpusRequest())
    assert (corpus.id(0), corpus.name, corpus.place) == ("a", "a", str(paths[1]))


def test_the_fingerprint_has_the_contents_of_files_and_no_names(tmp_path, paths):
    before = Plain("text", paths, tmp_path, CorpusRequest()).fingerprint
    alone = Plain("text", paths[:1], None, CorpusRequest()).fingerprint
    paths[0].rename(tmp_path / "b")
    assert (
        Plain("text", [tmp_path / "b", paths[1]], tmp_path, CorpusRequest()).fingerprint
        == before
    )
    assert Plain("text", [tmp_path / "b"], None, CorpusRequest()).fingerprint == alone
    (tmp_path / "b").write_text("changed")
    assert Plain("text", [tmp_path / "b"], None, CorpusRequest()).fingerprint != alone


def test_names_that_are_no_utf8_are_spelt_out():
    assert file_id(Path("caf\udce9.txt"), None) == r"caf\xe9.txt"
    assert file_id(Path("/x/é/b"), Path("/x")) == "é/b"


def test_what_is_there_is_imported():
    assert import_extra("json", "audio", "audio").loads("3") == 3


@pytest.mark.parametrize(
    ("package", "extra", "name"),
    [("soundfile", "audio", "a.wav"), ("PIL.Image", "image", "a.png")],
)
def test_what_is_missing_says_how_to_get_it(tmp_path, monkeypatch, package, extra, name):
    (tmp_path / name).write_bytes(b"x")
    monkeypatch.setitem(sys.modules, package, None)  # what Python does for a failed import
    with pytest.raises(SourceError, match="without") as caught:
        open_corpus(tmp_path / name, skip_bad=True)
    assert caught.value.hint == f"pip install 'isoscope[{extra}]'"
    assert caught.value.slug == "package-missing"


def test_opening_text_loads_none_of_them(tmp_path):
    import subprocess

    code = (
        "import sys; from isoscope.source.corpus import open_corpus; open_corpus(None)\n"
        "print({'soundfile', 'soxr', 'PIL', 'pyarrow', 'torch'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr

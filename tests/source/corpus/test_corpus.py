"""The laws of every corpus: random access, order, fingerprint, kind."""

import hashlib

import numpy as np
import pytest

from isoscope.source.corpus import KINDS, Corpus, Document, open_corpus
from isoscope.source.corpus.corpus import id_key


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
        from isoscope.source.corpus.dropped import Dropped

        super().__init__("text", "named", "here", Dropped())
        self._names = names

    def __len__(self):
        return len(self._names)

    def id(self, ordinal):
        return self._names[self.within(ordinal)]

    def document(self, ordinal):
        return Document(self.id(ordinal), "text")

    def stamp(self):
        return "none"


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
    assert id_key("läuft") == int.from_bytes(digest, "little")
    assert id_key("\udcff") != id_key("\udcfe")

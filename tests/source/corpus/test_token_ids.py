"""Files of token ids."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope.errors import IsoscopeError, SourceError
from isoscope.source.corpus import open_corpus


@pytest.mark.parametrize("dtype", ["uint8", "uint16", ">i4", "int64", "uint64"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_row_is_a_document(tmp_path, dtype, order):
    ids = np.random.default_rng(1).integers(0, 99, size=(6, 5)).astype(dtype, order=order)
    np.save(tmp_path / "t.npy", ids)
    corpus = open_corpus(tmp_path / "t.npy")
    assert (corpus.kind, len(corpus), corpus.id(3)) == ("tokens", 6, "t.npy:3")
    np.testing.assert_array_equal([each.content for each in corpus], ids.astype(np.int64))
    assert corpus.document(2).place.endswith("t.npy, row 2")


def test_a_stream_is_cut_into_documents(tmp_path):
    np.save(tmp_path / "t.npy", np.arange(1200))
    corpus = open_corpus(tmp_path / "t.npy")
    assert [len(each.content) for each in corpus] == [512, 512, 176]
    pieces = open_corpus(tmp_path / "t.npy", length=100)
    np.testing.assert_array_equal(
        np.concatenate([each.content for each in pieces]), np.arange(1200)
    )
    assert pieces.fingerprint != corpus.fingerprint


def test_a_folder_of_files_is_one_corpus(tmp_path):
    for name in "ab":
        np.save(tmp_path / f"{name}.npy", np.arange(6).reshape(2, 3))
    corpus = open_corpus(tmp_path)
    assert [each.id for each in corpus] == ["a.npy:0", "a.npy:1", "b.npy:0", "b.npy:1"]


@pytest.mark.parametrize(
    ("bad", "slug"),
    [
        (np.array([[0, 1], [2, -1]]), "token-ids"),
        (np.array([0, 1, 2**31]), "token-ids"),
        (np.array([0, 2**64 - 1], dtype=np.uint64), "token-ids"),
        (np.ones((3, 4), dtype=np.float32), "token-array"),
        (np.ones((3, 4), dtype=bool), "token-array"),
        (np.ones((3, 4, 2), dtype=int), "token-array"),
        (np.array(3), "token-array"),
        (np.zeros((0, 4), dtype=int), "corpus-empty"),
        (np.zeros((4, 0), dtype=int), "corpus-empty"),
        (np.zeros(0, dtype=int), "corpus-empty"),
    ],
)
def test_what_are_no_token_ids_is_refused(tmp_path, bad, slug):
    np.save(tmp_path / "t.npy", bad)
    with pytest.raises(SourceError, match=r"t\.npy") as caught:
        open_corpus(tmp_path / "t.npy")
    assert caught.value.slug == slug


def test_the_first_bad_id_is_named(tmp_path):
    np.save(tmp_path / "t.npy", np.array([[0, 1], [2, -7], [-7, 0]]))
    with pytest.raises(SourceError, match="got -7 in row 1"):
        open_corpus(tmp_path / "t.npy")


def test_pickles_cuts_and_odd_lengths_are_refused(tmp_path):
    path = tmp_path / "t.npy"
    np.save(path, np.array([[1, 2], "a"], dtype=object), allow_pickle=True)
    with pytest.raises(SourceError) as caught:
        open_corpus(path)
    assert caught.value.slug == "pickle"
    np.save(path, np.arange(9))
    with pytest.raises(SourceError) as caught:
        open_corpus(path, length=0)
    assert caught.value.slug == "token-length"
    with pytest.raises(SourceError, match="cannot take a column"):
        open_corpus(path, column="ids")
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(SourceError) as caught:
        open_corpus(path)
    assert caught.value.slug == "file-truncated"


def test_a_file_that_is_cut_later_is_noticed(tmp_path):
    np.save(tmp_path / "t.npy", np.arange(900))
    corpus = open_corpus(tmp_path / "t.npy")
    (tmp_path / "t.npy").write_bytes((tmp_path / "t.npy").read_bytes()[:-8])
    with pytest.raises(SourceError) as caught:
        corpus.document(0)
    assert caught.value.slug == "file-truncated"


headers = st.builds(
    "{{'descr': '{}', 'fortran_order': {}, 'shape': ({})}}".format,
    st.sampled_from(["<i4", "<i8", "|u1", "<f4", "|O", "<U3", "i", "<i99", "V8"]),
    st.booleans(),
    st.lists(st.integers(-1, 2**65), max_size=3).map(lambda n: ",".join(map(str, n)) + ","),
)
files = st.one_of(
    st.binary(max_size=100),
    st.tuples(headers, st.binary(max_size=64)).map(
        lambda each: (
            b"\x93NUMPY\x01\0" + len(each[0]).to_bytes(2, "little") + each[0].encode() + each[1]
        )
    ),
)


@given(files, st.integers(1, 600))
def test_any_header_is_read_or_refused(tmp_path_factory, raw, length):
    path = tmp_path_factory.mktemp("fuzz") / "t.npy"
    path.write_bytes(raw)
    try:
        corpus = open_corpus(path, length=length)
        assert sum(len(corpus.document(i).content) for i in range(min(3, len(corpus)))) <= 64
    except IsoscopeError as error:
        assert error.slug and "\n" not in error.problem

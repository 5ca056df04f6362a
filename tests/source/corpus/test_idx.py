"""idx: the format of MNIST."""

import gzip
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope.errors import IsoscopeError, SourceError
from isoscope.source.corpus import open_corpus

NAME = "t10k-images-idx3-ubyte"


@pytest.mark.parametrize("name", [NAME, "a.idx3-ubyte", f"{NAME}.gz"])
def test_images_are_documents(tmp_path, idx, images, name):
    grey = images()
    raw = idx(grey)
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith("gz") else raw)
    corpus = open_corpus(tmp_path / name)
    assert (corpus.kind, len(corpus), corpus.id(2)) == ("image", 6, f"{name}:2")
    for i, document in enumerate(corpus):
        assert document.content.shape == (4, 3, 3) and document.content.dtype == np.uint8
        np.testing.assert_array_equal(document.content[:, :, 2], grey[i])
    assert corpus.document(2).place.endswith("image 2")


def test_packed_or_not_it_is_the_same_content(tmp_path, idx, images):
    raw = idx(images())
    (tmp_path / NAME).write_bytes(raw)
    (tmp_path / f"{NAME}.gz").write_bytes(gzip.compress(raw))
    stamps = {open_corpus(tmp_path / each).fingerprint for each in (NAME, f"{NAME}.gz")}
    assert len(stamps) == 1


def test_a_folder_of_mnist_leaves_the_labels_out(tmp_path, idx, images):
    for name in ("train-images-idx3-ubyte", NAME):
        (tmp_path / name).write_bytes(idx(images()))
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(struct.pack(">HBBI", 0, 8, 1, 6))
    corpus = open_corpus(tmp_path)
    assert len(corpus) == 12 and corpus.id(6) == "train-images-idx3-ubyte:0"


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("change", "slug"),
    [
        (lambda raw: raw[:-1], "file-truncated"),
        (lambda raw: raw + b"x", "file-trailing"),
        (lambda raw: raw[:9], "file-"),
        (lambda raw: b"xx" + raw[2:], "file-damaged"),
        (lambda raw: raw[:3] + b"\x01" + raw[4:], "idx-type"),
        (lambda raw: raw[:2] + b"\x0d" + raw[3:], "idx-type"),
        (lambda raw: raw[:4] + b"\xff" * 4 + raw[8:], "file-truncated"),
        (lambda raw: raw[:8] + b"\xff" * 8 + raw[16:], "image-too-large"),
        (lambda raw: raw[:4] + bytes(4) + raw[8:16], "corpus-empty"),
        (lambda raw: raw[:8] + bytes(4) + raw[12:16], "corpus-empty"),
    ],
)
def test_a_header_is_not_believed(tmp_path, idx, images, change, slug, packed):
    raw = change(idx(images()))
    path = tmp_path / (f"{NAME}.gz" if packed else NAME)
    path.write_bytes(gzip.compress(raw) if packed else raw)
    with pytest.raises(SourceError, match=NAME) as caught:
        open_corpus(path)
    assert caught.value.slug.startswith(slug)


def test_a_column_is_refused(tmp_path, idx, images):
    (tmp_path / NAME).write_bytes(idx(images()))
    with pytest.raises(SourceError, match="cannot take a column"):
        open_corpus(tmp_path / NAME, id="label")


sizes = st.one_of(st.integers(0, 4), st.integers(0, 2**32 - 1))
files = st.one_of(
    st.binary(max_size=60),
    st.builds(
        lambda magic, n, h, w, body: magic + struct.pack(">III", n, h, w) + body,
        st.sampled_from([b"\0\0\x08\x03", b"\0\0\x08\x01", b"\0\0\x0d\x03", b"\x1f\x8b\x08\0"]),
        sizes, sizes, sizes, st.binary(max_size=64),
    ),
)  # fmt: skip


@given(files, st.sampled_from(["", "packed", "broken"]))
def test_any_header_is_read_or_refused(tmp_path_factory, raw, packing):
    path = tmp_path_factory.mktemp("fuzz") / (f"{NAME}.gz" if packing else NAME)
    path.write_bytes(gzip.compress(raw) if packing == "packed" else raw)
    try:
        corpus = open_corpus(path)
        assert sum(each.content.size for each in corpus) == 3 * (len(raw) - 16)
    except IsoscopeError as error:
        assert error.slug and "\n" not in error.problem

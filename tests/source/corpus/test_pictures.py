"""Image files, a document each."""

import gzip
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from isoscope.errors import DocumentError, IsoscopeError, SourceError
from isoscope.source.corpus import open_corpus, pictures


@pytest.mark.parametrize("suffix", ["png", "bmp", "tiff", "ppm", "webp"])
def test_pixels_come_as_they_are(tmp_path, picture, suffix):
    how = {"lossless": True} if suffix == "webp" else {}
    pixels = picture(tmp_path / f"a.{suffix}", **how)
    document = open_corpus(tmp_path / f"a.{suffix}").document(0)
    np.testing.assert_array_equal(document.content, pixels)
    assert (document.id, document.place) == (f"a.{suffix}", str(tmp_path / f"a.{suffix}"))


@pytest.mark.parametrize("mode", ["L", "P", "1", "LA", "RGBA", "CMYK"])
def test_every_mode_becomes_three_colours(tmp_path, picture, mode):
    suffix = "tiff" if mode == "CMYK" else "png"
    picture(tmp_path / f"a.{suffix}", mode=mode)
    content = open_corpus(tmp_path / f"a.{suffix}").document(0).content
    assert content.shape == (4, 5, 3) and content.dtype == np.uint8 and content.std() > 0


def test_sixteen_bits_are_scaled_and_not_cut(tmp_path):
    grey = np.array([[0, 256, 65535], [512, 32768, 300]], dtype=np.uint16)
    Image.fromarray(grey).save(tmp_path / "a.png")
    content = open_corpus(tmp_path / "a.png").document(0).content
    np.testing.assert_array_equal(content[:, :, 1], grey >> 8)


def test_an_animation_is_its_first_frame_and_a_turned_photograph_upright(tmp_path):
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue")]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert open_corpus(tmp_path / "a.gif").document(0).content[0, 0].tolist() == [255, 0, 0]
    turned = Image.new("RGB", (6, 4), "red")
    exif = turned.getexif()
    exif[0x0112] = 6
    turned.save(tmp_path / "b.jpg", exif=exif)
    assert open_corpus(tmp_path / "b.jpg").document(0).content.shape == (6, 4, 3)


def test_a_folder_is_read_all_the_way_down(tmp_path, picture):
    for name in ("b.png", "dogs/a.jpg", "dogs/x/c.JPEG"):
        picture(tmp_path / name)
    (tmp_path / "b.txt").write_text("what is to be seen")
    (tmp_path / "metadata.csv").write_text("file_name,text")
    corpus = open_corpus(tmp_path)
    assert corpus.kind == "image"
    assert [each.id for each in corpus] == ["b.png", "dogs/a.jpg", "dogs/x/c.JPEG"]


def test_links_that_lead_out_are_not_followed(tmp_path, picture):
    picture(tmp_path / "out.png")
    picture(tmp_path / "in" / "a.png")
    (tmp_path / "in" / "b.png").symlink_to(tmp_path / "out.png")
    assert [each.id for each in open_corpus(tmp_path / "in")] == ["a.png"]


@pytest.mark.parametrize(
    "raw", [b"", b"no image", b"\x89PNG\r\n\x1a\n", b"%!PS-Adobe-3.0 EPSF"]
)
def test_an_unreadable_image_is_named_or_skipped(tmp_path, picture, raw):
    picture(tmp_path / "good.png")
    (tmp_path / "bad.png").write_bytes(raw)
    with pytest.raises(SourceError, match=r"bad\.png") as caught:
        open_corpus(tmp_path)
    assert caught.value.slug == "image-unreadable"
    corpus = open_corpus(tmp_path, skip_bad=True)
    assert [each.id for each in corpus] == ["good.png"]
    assert corpus.warnings == [
        f"images that cannot be used skipped: 1 (first: {tmp_path / 'bad.png'})"
    ]


def test_a_cut_image_fails_when_it_is_read_and_may_be_skipped(tmp_path, picture):
    picture(tmp_path / "a.png", size=(64, 64))
    (tmp_path / "a.png").write_bytes((tmp_path / "a.png").read_bytes()[:2000])
    corpus = open_corpus(tmp_path / "a.png")
    with pytest.raises(SourceError, match=r"a\.png") as caught:
        corpus.document(0)
    assert caught.value.slug == "image-unreadable"
    assert isinstance(caught.value, DocumentError)


@pytest.mark.parametrize("side", [9600, 20000])
def test_an_image_that_would_fill_the_memory_is_refused(tmp_path, side):
    Image.new("1", (side, side)).save(tmp_path / "bomb.png")
    with pytest.raises(SourceError, match=r"pixels at most in .*bomb\.png") as caught:
        open_corpus(tmp_path)
    assert caught.value.slug == "image-too-large"
    Image.new("1", (5, 5)).save(tmp_path / "a.png")
    assert len(open_corpus(tmp_path, skip_bad=True)) == 1


def test_the_limit_is_that_of_pillow():
    assert pictures.MOST_PIXELS == Image.MAX_IMAGE_PIXELS


@pytest.mark.parametrize("suffix", ["png", "jpg", "gif", "bmp", "webp", "tiff"])
def test_altered_images_are_read_or_refused(tmp_path, picture, suffix):
    path = tmp_path / f"a.{suffix}"
    picture(path, size=(16, 16))
    raw = path.read_bytes()
    rng = np.random.default_rng(3)
    outcomes = []
    for _ in range(60):
        broken = bytearray(raw[: rng.integers(1, len(raw) + 1)] if rng.random() < 0.4 else raw)
        broken[rng.integers(len(broken))] = rng.integers(256)
        path.write_bytes(broken)
        try:
            outcomes.append(open_corpus(path).document(0).content.ndim)
        except IsoscopeError as error:
            outcomes.append(error.slug)
    assert "image-unreadable" in outcomes


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
    labels = struct.pack(">HBBI", 0, 8, 1, 6)
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(labels)
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))
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

"""npz: stored members are map_array, deflated ones streamed, bombs refused."""

import io
import zipfile

import numpy as np
import pytest

from isoscope.errors import SourceError
from isoscope.source import named_arrays, npy, open_source


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("dtype", ["<f4", ">f8", "i1"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_members_are_read(compressed, dtype, order, tmp_path, cloud, whole):
    rows = cloud().astype(dtype, order=order)
    (np.savez_compressed if compressed else np.savez)(tmp_path / "v.npz", a=rows, b=rows[0])
    source = open_source(tmp_path / "v.npz")
    np.testing.assert_array_equal(whole(source, 7), rows)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("kind", ["<U5", "S5", "i8", ">u2"])
def test_labels_are_read_beside_the_rows(compressed, kind, tmp_path, cloud, labels):
    documents = np.arange(50) // 3
    save = np.savez_compressed if compressed else np.savez
    save(tmp_path / "v.npz", a=cloud(), doc=documents.astype(kind))
    found = labels(open_source(tmp_path / "v.npz", document="doc", id="doc"))
    assert found["ids"] == [str(each) for each in documents]
    assert [str(each) for each in found["documents"]] == found["ids"]


def test_several_arrays_have_to_be_chosen_from(tmp_path, cloud):
    np.savez(tmp_path / "v.npz", train=cloud(), test=cloud(n=3), mean=cloud()[0])
    with pytest.raises(SourceError, match="got 2") as caught:
        open_source(tmp_path / "v.npz")
    assert "train (50, 4), test (3, 4)" in caught.value.hint
    assert open_source(tmp_path / "v.npz", column="test").rows == 3


def test_two_arrays_of_one_file_are_two_collections(tmp_path, cloud):
    np.savez(tmp_path / "v.npz", a=cloud(), b=cloud())
    first, second = (open_source(tmp_path / "v.npz", key=key) for key in "ab")
    assert first.fingerprint != second.fingerprint


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"a": np.ones(3)}, "got 1 dimension"),
        ({"a": np.ones((2, 2), dtype=complex)}, "got complex"),
        ({"a": np.ones(3), "b": np.ones((2, 2, 2))}, "expected one two-dimensional array"),
        ({}, "expected one two-dimensional array"),
        ({"a": np.array([[None]])}, "a pickle"),
    ],
)
def test_archives_without_vectors_are_refused(arrays, words, tmp_path):
    np.savez(tmp_path / "v.npz", allow_pickle=True, **arrays)
    with pytest.raises(SourceError, match=words):
        open_source(tmp_path / "v.npz")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.arange(49), "expected 50 documents"),
        (np.ones(50), "got float64"),
        (np.ones((50, 1), dtype=int), r"got an array of shape \(50, 1\)"),
    ],
)
def test_labels_that_do_not_fit_are_refused(values, words, tmp_path, cloud):
    np.savez(tmp_path / "v.npz", a=cloud(), doc=values)
    with pytest.raises(SourceError, match=words):
        open_source(tmp_path / "v.npz", column="a", document="doc")


def member(shape, content, method=zipfile.ZIP_DEFLATED):
    raw, archive = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array_header_1_0(
        raw, {"descr": "<f4", "fortran_order": False, "shape": shape}
    )
    with zipfile.ZipFile(archive, "w", method) as file:
        file.writestr("a.npy", raw.getvalue() + content)
    return archive.getvalue()


@pytest.mark.parametrize("claimed", [(10**12, 768), (5, 4), (1, 4)])
def test_a_member_of_another_size_than_its_header_says_is_refused(claimed, tmp_path):
    (tmp_path / "v.npz").write_bytes(member(claimed, bytes(32)))
    with pytest.raises(SourceError, match=r"expected \d+ bytes in .*\[a\]"):
        open_source(tmp_path / "v.npz")


def test_a_bomb_is_read_in_small_pieces(tmp_path, whole):
    path = tmp_path / "v.npz"
    path.write_bytes(member((250_000, 64), bytes(64_000_000)))
    assert path.stat().st_size < 100_000
    sizes = [len(chunk) for chunk in open_source(path).chunks()]
    assert sum(sizes) == 250_000 and max(sizes) < 100_000


def test_a_bomb_beyond_all_numbers_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(named_arrays, "FREE", 100_000)
    path = tmp_path / "v.npz"
    path.write_bytes(member((2500, 64), bytes(640_000)))
    with pytest.raises(
        SourceError, match=r"200 times its packed size in .*v.npz\[a\], got 0.6"
    ):
        open_source(path)
    np.savez_compressed(path, a=np.random.default_rng(0).normal(size=(500, 64)))
    assert open_source(path).rows == 500  # as large, of numbers


def test_other_ways_of_packing_are_refused(tmp_path):
    (tmp_path / "v.npz").write_bytes(member((2, 4), bytes(32), zipfile.ZIP_LZMA))
    with pytest.raises(SourceError, match="compression method 14"):
        open_source(tmp_path / "v.npz")


def test_a_large_deflated_array_in_fortran_order_is_refused(tmp_path, monkeypatch, whole):
    monkeypatch.setattr(npy, "MAX_TURNED", 100)
    np.savez_compressed(tmp_path / "v.npz", a=np.asfortranarray(np.ones((10, 4))))
    with pytest.raises(SourceError, match="Fortran order"):
        whole(open_source(tmp_path / "v.npz"))


def test_a_broken_stream_inside_is_damage(tmp_path, cloud, whole):
    path = tmp_path / "v.npz"
    np.savez_compressed(path, a=cloud(n=5000))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)
    with pytest.raises(SourceError, match=r"expected an npz file at .*v.npz, got damaged"):
        whole(open_source(path))

"""A folder of files: which are read, in what order, and what has to agree."""

import numpy as np
import pytest

from isoscope.errors import SourceError
from isoscope.source import open_source


@pytest.fixture
def folder(tmp_path, cloud, write):
    rows = cloud(n=30)
    (tmp_path / "b").mkdir()
    write(tmp_path / "a.npy", rows[:10])
    write(tmp_path / "b" / "x.csv", rows[10:20])
    write(tmp_path / "c.parquet", rows[20:])
    return tmp_path, rows


def test_files_are_read_in_the_order_of_their_paths(folder, whole):
    path, rows = folder
    (path / "notes.txt").write_text("unknown suffixes are left out")
    (path / ".hidden.npy").write_text("so are hidden files")
    (path / ".cache").mkdir()
    (path / ".cache" / "y.npy").write_text("and hidden folders")
    source = open_source(path)
    np.testing.assert_array_equal(whole(source, 7).astype(np.float32), rows)
    assert list(dict.fromkeys(each.source for each in source.chunks())) == ["a", "b/x", "c"]
    assert source.width == 4 and source.rows is None and source.dtype == "float64"
    assert [each.start for each in source.chunks(5)] == [0, 5] * 3


def test_rows_are_counted_where_all_files_count_theirs(tmp_path, cloud, write):
    for name in ("a.npy", "b.npz", "c.parquet"):
        write(tmp_path / name, cloud(n=5))
    source = open_source(tmp_path)
    assert source.rows == 15 and source.dtype == "float32" and source.name == tmp_path.name


def test_a_name_goes_before_those_of_the_files(folder):
    source = open_source(folder[0], name="mine")
    assert source.name == "mine"
    assert {each.source for each in source.chunks()} == {"mine/a", "mine/b/x", "mine/c"}


def test_two_files_of_one_stem_keep_their_suffix(tmp_path, cloud, write):
    write(tmp_path / "a.npy", cloud())
    write(tmp_path / "a.csv", cloud())
    names = [each.source for each in open_source(tmp_path).chunks()]
    assert names == ["a.csv", "a.npy"]


def test_different_widths_name_both_files(tmp_path, cloud, write):
    write(tmp_path / "a.npy", cloud(d=4))
    write(tmp_path / "b.jsonl", cloud(d=5))
    with pytest.raises(SourceError, match=r"width 4 as in .*a\.npy, got width 5 in .*b\.jsonl"):
        open_source(tmp_path)


def test_a_folder_without_vectors_says_what_was_looked_for(tmp_path):
    (tmp_path / "a.txt").touch()
    with pytest.raises(SourceError, match="expected files of vectors") as caught:
        open_source(tmp_path)
    assert ".npy" in caught.value.hint and caught.value.slug == "folder-without-vectors"


def test_a_run_folder_is_not_a_folder_of_vectors(folder, whole):
    path, _ = folder
    (path / "out").mkdir()
    (path / "out" / "state.npy").write_text("part of a run, left out")
    (path / "out" / "run.json").touch()
    assert len(whole(open_source(path))) == 30
    with pytest.raises(SourceError, match="got the run") as caught:
        open_source(path / "out")
    assert "isoscope read" in caught.value.hint


def test_links_that_lead_out_are_not_followed(tmp_path, cloud, write, whole):
    inside = tmp_path / "in"
    inside.mkdir()
    write(inside / "a.npy", cloud(n=3))
    outside = write(tmp_path / "b.npy", cloud(n=5))
    (inside / "b.npy").symlink_to(outside)
    (inside / "loop").symlink_to(inside)
    (inside / "gone.npy").symlink_to(tmp_path / "gone")
    assert len(whole(open_source(inside))) == 3
    (inside / "c.npy").symlink_to(inside / "a.npy")
    assert len(whole(open_source(inside))) == 6


def test_a_bad_file_among_them_is_named(folder):
    path, _ = folder
    (path / "b" / "bad.npy").write_bytes(b"nonsense")
    with pytest.raises(SourceError, match=r"bad\.npy"):
        open_source(path)


def test_documents_may_run_on_but_not_come_back(tmp_path, cloud, write, whole):
    write(tmp_path / "a.jsonl", cloud(n=3), {"d": ["x", "x", "y"]})
    write(tmp_path / "b.jsonl", cloud(n=2), {"d": ["y", "z"]})
    assert len(whole(open_source(tmp_path, document="d"))) == 5
    write(tmp_path / "c.jsonl", cloud(n=1), {"d": ["x"]})
    with pytest.raises(SourceError, match=r"document 'x' again in row 0 of .*c\.jsonl"):
        whole(open_source(tmp_path, document="d"))


def test_documents_in_one_npy_beside_a_folder(tmp_path, cloud, write, labels):
    write(tmp_path / "a.npy", cloud(n=3))
    write(tmp_path / "b.npy", cloud(n=2))
    np.save(tmp_path / "doc.npy", np.array([1, 1, 2, 2, 3]))
    source = open_source(tmp_path, document=tmp_path / "doc.npy")
    assert labels(source, 2)["documents"] == [1, 1, 2, 2, 3]


def test_labels_beside_files_that_do_not_count_their_rows_are_refused(folder):
    with pytest.raises(SourceError, match="cannot match labels"):
        open_source(folder[0], document=list(range(30)))


def test_dropped_rows_are_counted_over_all_files(tmp_path, whole):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n3\n")
    (tmp_path / "b.jsonl").write_text("[1, 2]\n[3]\n[4]\n")
    source = open_source(tmp_path, skip_bad=True)
    assert len(whole(source)) == 2 and source.skipped == 3


def test_the_fingerprint_follows_the_content_and_not_the_place(folder, tmp_path_factory, write):
    path, rows = folder
    before = open_source(path).fingerprint
    elsewhere = tmp_path_factory.mktemp("else") / "moved"
    path.rename(elsewhere)
    assert open_source(elsewhere).fingerprint == before
    write(elsewhere / "a.npy", rows[:10] + 1)
    assert open_source(elsewhere).fingerprint != before

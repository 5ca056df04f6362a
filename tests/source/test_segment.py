"""Segments: together they are the whole source, and none ends inside a document."""

import io
import json
import pickle
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import msgspec
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isoscope.errors import SourceError
from isoscope.source import columns, open_source
from isoscope.source.row_source import Segment, ordinals_of

SIZES = (1, 3, 7, 10, 25, 49, 50, 1000)
DOCUMENTS = sorted(int(each) for each in np.random.default_rng(5).integers(0, 17, 50))
LABELS = {"doc": DOCUMENTS, "key": [f"k{i}" for i in range(50)]}


def records(chunks):
    """Every row with all that comes along with it."""
    return [
        (
            chunk.source,
            chunk.place,
            int(ordinals_of(chunk)[i]),
            None if chunk.documents is None else str(chunk.documents[i]),
            None if chunk.ids is None else chunk.ids[i],
            None if chunk.texts is None else chunk.texts[i],
            chunk.rows.dtype.name,
            chunk.rows[i].tobytes(),
        )
        for chunk in chunks
        for i in range(len(chunk))
    ]


def check(source, rows, chunk=4):
    """The law: segments are consecutive, and their rows are those of the source."""
    expected = records(source.chunks(chunk))
    skipped = source.skipped
    segments = source.segments(rows)
    assert segments == source.segments(rows)
    shares = []
    dropped = 0
    for segment in segments:
        shares.append(records(source.chunks(chunk, segment)))
        dropped += source.skipped
    assert [row for share in shares for row in share] == expected
    assert dropped == skipped
    if source.has_documents:
        found = [{row[3] for row in share} for share in shares]
        assert sum(map(len, found)) == len(set().union(*found))
    return [len(share) for share in shares]


def groups(documents, size):
    """The slow definition: end with the first document end from `size` rows on."""
    lengths, begun = [], 0
    for i in range(1, len(documents) + 1):
        end = i == len(documents)
        if end or (i - begun >= size and documents[i] != documents[i - 1]):
            lengths.append(i - begun)
            begun = i
    return lengths


@pytest.mark.parametrize("rows", SIZES)
def test_npy_is_cut_at_any_row(rows, tmp_path, cloud, write):
    path = write(tmp_path / "v.npy", cloud())
    assert check(open_source(path), rows) == groups(range(50), rows)


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("suffix", ["npy", "npz", "safetensors"])
def test_mapped_files_are_cut_where_documents_end(rows, suffix, tmp_path, cloud, write):
    carried = {"doc": DOCUMENTS, "key": list(range(50))}
    path = write(tmp_path / f"v.{suffix}", cloud(), carried)
    names = {"document": "doc", "id": "key"}
    if suffix == "npy":
        names = {role: tmp_path / f"{name}.npy" for role, name in names.items()}
    assert check(open_source(path, **names), rows) == groups(DOCUMENTS, rows)


@pytest.mark.parametrize("rows", [3, 25])
@pytest.mark.parametrize(
    ("suffix", "how"),
    [
        ("npz", {"compressed": True}),
        ("arrow", {"batch": 7}),
        ("arrow", {"stream": True, "batch": 7}),
        ("feather", {}),
        ("jsonl", {}),
        ("csv", {}),
        ("tsv", {}),
        ("parquet", {}),
    ],
)
def test_files_that_cannot_be_entered_in_the_middle_are_one(
    rows, suffix, how, tmp_path, cloud, write
):
    path = write(tmp_path / f"v.{suffix}", cloud(), LABELS, **how)
    source = open_source(path, document="doc", id="key", text="key", column=_column(suffix))
    assert check(source, rows) == [50]


def _column(suffix):
    return "e*" if suffix in ("csv", "tsv") else "embedding"


def test_an_array_in_fortran_order_is_one(tmp_path, cloud):
    np.save(tmp_path / "v.npy", np.asfortranarray(cloud()))
    np.savez(tmp_path / "v.npz", np.asfortranarray(cloud()))
    assert check(open_source(tmp_path / "v.npy"), 10) == [50]
    assert check(open_source(tmp_path / "v.npz"), 10) == [50]


def test_bfloat16_is_cut_as_any_tensor(tmp_path):
    from safetensors.torch import save_file

    save_file({"x": torch.randn(20, 3).bfloat16()}, tmp_path / "v.safetensors")
    assert check(open_source(tmp_path / "v.safetensors"), 8) == [8, 8, 4]


def test_stored_strings_of_an_npz_stay_with_their_rows(tmp_path, cloud, write):
    path = write(tmp_path / "v.npz", cloud(), {"doc": DOCUMENTS, "key": LABELS["key"]})
    source = open_source(path, document="doc", id="key", text="key")
    assert check(source, 10) == groups(DOCUMENTS, 10)


@pytest.mark.parametrize(
    ("rows", "lengths"),
    [(1, [8] * 6 + [2]), (8, [8] * 6 + [2]), (9, [16] * 3 + [2]), (20, [24, 24, 2])],
)
def test_parquet_is_cut_between_row_groups(rows, lengths, tmp_path, cloud, write):
    path = write(tmp_path / "v.parquet", cloud(), LABELS, row_group_size=8)
    assert check(open_source(path, id="key", column="embedding"), rows) == lengths


def test_row_groups_that_cut_a_document_stay_together(tmp_path, cloud, write):
    carried = {"doc": ["a"] * 4 + ["b"] * 8 + ["c"] * 4}
    path = write(tmp_path / "v.parquet", cloud(n=16), carried, row_group_size=4)
    assert check(open_source(path, document="doc"), 2) == [4, 8, 4]
    carried = {"doc": ["a", "a", "a", None, None, "b"]}
    write(path, cloud(n=6), carried, row_group_size=2)
    assert check(open_source(path, document="doc", skip_bad=True), 1) == [3, 1]


def test_small_files_are_grouped_and_uncounted_ones_stand_alone(tmp_path, cloud, write):
    (tmp_path / "f").mkdir()
    names = ["a.npy", "b.npz", "c.parquet", "d.csv", "e.jsonl", "f/a.npy", "f/b.safetensors"]
    for i, name in enumerate(names):
        write(tmp_path / name, cloud(n=5, seed=i))
    source = open_source(tmp_path)
    assert check(source, 1000) == [15, 5, 5, 10]
    assert check(source, 10) == [10, 5, 5, 5, 10]
    assert check(source, 8) == [8, 7, 5, 5, 8, 2]
    assert source.segments(1000)[0] == Segment(first=0, last=3)
    assert source.segments(8)[:2] == (
        Segment(first=0, last=2, stop=3),
        Segment(first=1, last=3, start=3),
    )


@pytest.mark.parametrize("rows", [1, 4, 6, 9, 30])
@pytest.mark.parametrize("suffix", ["npz", "parquet", "arrow", "safetensors", "feather"])
def test_a_document_that_spans_files_is_not_cut(rows, suffix, tmp_path, cloud, write):
    for i, some in enumerate([[1, 1, 2], [2, 2, 2], [2], [3, 4], [5, 5]]):
        write(tmp_path / f"{i}.{suffix}", cloud(n=len(some), seed=i), {"doc": some})
    lengths = check(open_source(tmp_path, document="doc", column="embedding"), rows)
    assert max(lengths) <= max(rows + 5, 7) and (rows > 9 or len(lengths) > 1)


@pytest.mark.parametrize("names", [("a.csv", "b.csv"), ("a.jsonl", "b.parquet")])
def test_documents_that_only_a_full_reading_shows_make_one_segment(
    names, tmp_path, cloud, write
):
    write(tmp_path / names[0], cloud(n=5), {"doc": [1, 1, 2, 2, 3]})
    write(tmp_path / names[1], cloud(n=5), {"doc": [4, 4, 5, 5, 6]})
    assert check(open_source(tmp_path, document="doc"), 2) == [10]


def test_rows_that_are_dropped_are_counted_by_segment(tmp_path, cloud, write):
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "a.csv").write_text("x,y\n1,2\n3\n5,6\n")
    (tmp_path / "b.jsonl").write_text("[1, 2]\n[3]\n[4]\n")
    vectors = [[1.0, 2.0], None, [3.0], [4.0, 5.0], [6.0, None], [7.0, 8.0]]
    pq.write_table(pa.table({"v": vectors}), tmp_path / "c.parquet", row_group_size=2)
    source = open_source(tmp_path, skip_bad=True)
    assert check(source, 2) == [2, 1, 1, 1, 1]
    for segment, skipped in zip(source.segments(2), [1, 2, 1, 1, 1], strict=True):
        list(source.chunks(segment=segment))
        assert source.skipped == skipped


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=6),
    rows=st.integers(1, 30),
    some=st.integers(1, 20),
    data=st.data(),
)
def test_any_folder_with_any_labels_beside_it(sizes, rows, some, data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("f")
    total = sum(sizes)
    lengths = data.draw(st.lists(st.integers(1, 9), min_size=total, max_size=total))
    documents = np.repeat(np.arange(total), lengths)[:total]
    for i, n in enumerate(sizes):
        np.save(folder / f"{i}.npy", np.random.default_rng(i).normal(size=(n, 2)))
    np.save(folder / "doc.npy", documents)
    source = open_source(folder, document=folder / "doc.npy", id=folder / "doc.npy")
    with patch.object(columns, "DOCUMENTS_PER_CHUNK", some):
        assert check(source, rows) == groups(documents, rows)
    (folder / "doc.npy").unlink()
    assert check(open_source(folder), rows) == groups(range(total), rows)


@settings(max_examples=60, deadline=None)
@given(
    files=st.lists(
        st.lists(st.tuples(st.integers(1, 5), st.booleans(), st.booleans()), min_size=1),
        min_size=1,
        max_size=4,
    ),
    group=st.integers(1, 6),
    rows=st.integers(1, 20),
    kind=st.sampled_from(["parquet", "arrow"]),
)
def test_any_tables_with_documents_and_holes(files, group, rows, kind, tmp_path_factory):
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path_factory.mktemp("f")
    document = 0
    for i, content in enumerate(files):
        documents, vectors = [], []
        for row, (step, has_document, has_vector) in enumerate(content):
            document += step > 3
            documents.append(f"d{document}" if has_document else None)
            vectors.append([float(document), 1.0] if has_vector or not row else None)
        types = pa.schema([("d", pa.string()), ("v", pa.list_(pa.float32()))])
        table = pa.table({"d": documents, "v": vectors}, schema=types)
        if kind == "parquet":
            pq.write_table(table, folder / f"{i}.parquet", row_group_size=group)
        else:
            with pa.ipc.new_stream(str(folder / f"{i}.arrow"), types) as writer:
                writer.write_table(table, max_chunksize=group)
    check(open_source(folder, document="d", skip_bad=True), rows)


@pytest.mark.parametrize("suffix", ["npy", "npz", "safetensors", "parquet", "arrow"])
def test_a_document_that_comes_back_in_a_later_segment_is_refused(
    suffix, tmp_path, cloud, write
):
    (tmp_path / "f").mkdir()
    for i, some in enumerate([[1, 1, 2], [3, 3, 1]]):
        carried = {} if suffix == "npy" else {"doc": some}
        write(tmp_path / "f" / f"{i}.{suffix}", cloud(n=3), carried)
    np.save(tmp_path / "doc.npy", [1, 1, 2, 3, 3, 1])
    document = tmp_path / "doc.npy" if suffix == "npy" else "doc"
    column = None if suffix == "npy" else "embedding"
    source = open_source(tmp_path / "f", document=document, column=column)
    with pytest.raises(SourceError, match="document '1' again in row 2 of") as planned:
        source.segments(3)
    with pytest.raises(SourceError) as read:
        list(source.chunks())
    assert str(planned.value) == str(read.value)


def test_a_document_that_comes_back_in_a_dropped_row_is_left_to_reading(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"d": ["a", "b", "a"], "v": [[1.0], [2.0], None]})
    pq.write_table(table, tmp_path / "v.parquet", row_group_size=1)
    path = tmp_path / "v.parquet"
    assert check(open_source(path, document="d", skip_bad=True), 1) == [2]


def test_another_process_finds_the_same_segments(tmp_path, cloud, write):
    for name in ("a.npy", "b.csv", "c.parquet", "d.npz"):
        write(tmp_path / name, cloud())
    mine = open_source(tmp_path).segments(20)
    code = (
        "import sys, msgspec; from isoscope.source import open_source; "
        "print(msgspec.json.encode(open_source(sys.argv[1]).segments(20)).decode())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env={"PYTHONPATH": str(Path(__file__).parents[2] / "src")},
        capture_output=True,
        check=True,
    )
    theirs = msgspec.json.decode(done.stdout, type=tuple[Segment, ...])
    assert theirs == mine and len(set(mine)) == len(mine) == 8
    assert pickle.loads(pickle.dumps(mine)) == mine
    assert json.loads(done.stdout)[0] == {"first": 0, "last": 1, "start": 0, "stop": 20}


def test_what_is_live_is_one_segment(tmp_path, cloud, write):
    rows = cloud()
    path = write(tmp_path / "v.npy", rows, {"doc": DOCUMENTS})
    live = [
        open_source(rows),
        open_source(torch.tensor(rows)),
        open_source(pd.DataFrame(rows)),
        open_source(rows.tolist()),
        open_source(path, document=DOCUMENTS),
    ]
    for source in live:
        assert source.live and check(source, 10) == [50]
    stream = open_source(io.BytesIO(path.read_bytes()))
    assert stream.live and stream.segments(10) == (Segment(first=0, last=1),)
    (segment,) = stream.segments(10)
    assert len(records(stream.chunks(7, segment))) == 50
    with pytest.raises(SourceError, match="second pass"):
        stream.chunks(7, segment)
    assert not open_source(path).live
    assert not open_source(path, document=tmp_path / "doc.npy").live
    assert not open_source(tmp_path, document=tmp_path / "doc.npy").live


@pytest.mark.parametrize(
    "segment",
    [
        Segment(first=0, last=0),
        Segment(first=-1, last=1),
        Segment(first=0, last=4),
        Segment(first=0, last=1, start=50),
        Segment(first=0, last=1, start=20, stop=20),
        Segment(first=0, last=1, stop=51),
        Segment(first=1, last=2, start=1),
        Segment(first=2, last=3, start=9),
    ],
)
def test_a_segment_of_something_else_is_refused(segment, tmp_path, cloud, write):
    write(tmp_path / "a.npy", cloud())
    write(tmp_path / "b.csv", cloud())
    write(tmp_path / "c.parquet", cloud(), row_group_size=10)
    with pytest.raises(ValueError, match="has no segment"):
        open_source(tmp_path).chunks(segment=segment)


def test_a_segment_needs_a_row():
    with pytest.raises(ValueError, match="at least 1 row"):
        open_source(np.ones((2, 2))).segments(0)

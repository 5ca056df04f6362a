"""open_source: what a path, a stream, an array, a tensor or a data frame becomes."""

import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from isoscope.errors import IsoscopeError, SourceError
from isoscope.source import SUFFIXES, RowSource, open_source
from isoscope.source.open_vectors import OPENERS, open_file
from isoscope.source.row_source import VectorRequest

DTYPES = ["float16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool"]
FORMATS = ["npy", "npz", "safetensors", "parquet", "arrow", "feather", "jsonl", "csv", "tsv"]
LABELLED = FORMATS[1:]
NARROW = {"float16", "float32", "int8", "uint8", "int16", "bool"}


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_format_gives_the_rows_that_went_in(suffix, dtype, tmp_path, cloud, write, whole):
    rows = cloud(dtype=dtype)
    source = open_source(write(tmp_path / f"v.{suffix}", rows))
    text = suffix in ("jsonl", "csv", "tsv")
    assert source.width == 4 and source.name == "v" and source.rereadable
    assert source.dtype == ("float64" if text else dtype)
    np.testing.assert_array_equal(whole(source), rows.astype(np.float64))
    narrow = dtype in NARROW and not text
    assert next(source.chunks()).rows.dtype == (np.float32 if narrow else np.float64)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("size", [1, 7, 49, 50, 51, 1000])
def test_small_chunks_add_up_to_the_whole(suffix, size, tmp_path, cloud, write, whole):
    rows = cloud()
    source = open_source(write(tmp_path / f"v.{suffix}", rows))
    np.testing.assert_array_equal(whole(source, size).astype(np.float32), rows)


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_file_can_be_read_again_and_left_in_the_middle(suffix, tmp_path, cloud, write, whole):
    source = open_source(write(tmp_path / f"v.{suffix}", cloud()))
    half = source.chunks(10)
    next(half), next(half)
    half.close()
    np.testing.assert_array_equal(whole(source), whole(source))


@pytest.mark.parametrize("suffix", [*LABELLED, "npy"])
@pytest.mark.parametrize("kind", ["text", "number"])
def test_documents_ids_and_texts_come_along(suffix, kind, tmp_path, cloud, write, labels):
    if suffix == "safetensors" and kind == "text":
        pytest.skip("safetensors holds no strings")
    documents = [i // 4 for i in range(50)]
    ids = list(range(50))
    if kind == "text":
        documents, ids = [f"d{i}" for i in documents], [f"é{i}" for i in ids]
    path = write(tmp_path / f"v.{suffix}", cloud(), {"doc": documents, "key": ids})
    asked = {"document": "doc", "id": "key", "text": "key"}
    if suffix == "npy":
        asked = {role: str(tmp_path / f"{name}.npy") for role, name in asked.items()}
    source = open_source(path, **asked)
    found = labels(source)
    assert source.has_documents
    expected = documents if suffix not in ("csv", "tsv") else [str(each) for each in documents]
    assert [type(each)(each) for each in found["documents"]] == expected
    assert found["ids"] == found["texts"] == [str(each) for each in ids]


@pytest.mark.parametrize("suffix", LABELLED)
def test_an_unsorted_document_column_is_refused(suffix, tmp_path, cloud, write, whole):
    documents = [1, 1, 2, 2, 1]
    path = write(tmp_path / f"v.{suffix}", cloud(n=5), {"doc": documents})
    source = open_source(path, document="doc")
    with pytest.raises(SourceError, match="document '1' again in row 4") as caught:
        whole(source, 2)
    assert "sort" in caught.value.hint and caught.value.slug == "documents-unsorted"


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_column_that_is_not_there_gets_a_suggestion(suffix, tmp_path, cloud, write):
    path = write(tmp_path / f"v.{suffix}", cloud(), {"doc": [1] * 50})
    with pytest.raises(IsoscopeError) as caught:
        open_source(path, column="embeddingz", document="docs")
    if suffix != "npy":
        assert caught.value.slug in ("unknown-column", "unknown-array")
        assert "did you mean" in caught.value.hint


@pytest.mark.parametrize("suffix", FORMATS)
def test_an_empty_file_is_refused(suffix, tmp_path):
    path = tmp_path / f"v.{suffix}"
    path.touch()
    with pytest.raises(SourceError, match="got an empty file") as caught:
        open_source(path)
    assert caught.value.slug == "file-empty" and str(path) in str(caught.value)


@pytest.mark.parametrize("suffix", FORMATS)
def test_zero_rows_are_refused(suffix, tmp_path, cloud, write):
    path = tmp_path / f"v.{suffix}"
    if suffix in ("csv", "tsv", "jsonl"):
        path.write_text(
            "e0\te1\n" if suffix == "tsv" else "e0,e1\n" if suffix == "csv" else "\n\n"
        )
    else:
        write(path, cloud(n=1)[:0])
    with pytest.raises(SourceError, match="got 0 rows"):
        open_source(path)


@pytest.mark.parametrize("suffix", ["npy", "npz", "safetensors", "parquet", "arrow", "feather"])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.99])
def test_a_truncated_file_is_refused(suffix, share, tmp_path, cloud, write, whole):
    path = write(tmp_path / f"v.{suffix}", cloud(n=500, d=16))
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(SourceError, match=f"v.{suffix}"):
        whole(open_source(path))


@pytest.mark.parametrize("suffix", ["npy", "npz", "safetensors", "parquet", "arrow"])
def test_another_format_under_a_suffix_is_named(suffix, tmp_path, cloud, write):
    other = "parquet" if suffix == "npy" else "npy"
    content = write(tmp_path / f"w.{other}", cloud()).read_bytes()
    path = tmp_path / f"v.{suffix}"
    path.write_bytes(content)
    with pytest.raises(SourceError) as caught:
        open_source(path)
    assert caught.value.slug in ("file-kind", "file-truncated")


def test_a_missing_path_an_unknown_suffix_and_no_permission(tmp_path, monkeypatch):
    with pytest.raises(SourceError, match=r"expected a file or folder at .*nothing"):
        open_source(tmp_path / "none.npy")
    with pytest.raises(SourceError, match="nothing of that name"):
        open_source("v\0.npy")
    (tmp_path / "v.xyz").write_text("1")
    with pytest.raises(SourceError, match=r"expected a file ending in \.npy.*v\.xyz"):
        open_source(tmp_path / "v.xyz")
    np.save(tmp_path / "v.npy", np.ones((2, 2)))

    def denied(*_args, **_more):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(SourceError, match="'permission denied'") as caught:
        open_source(tmp_path / "v.npy")
    assert caught.value.slug == "file-unreadable"


@pytest.mark.parametrize("suffix", ["pt", "json", "gz", "txt"])
def test_a_known_but_unread_suffix_gets_advice(suffix, tmp_path):
    path = tmp_path / f"v.{suffix}"
    path.write_text("1")
    with pytest.raises(SourceError) as caught:
        open_source(str(path))
    assert caught.value.slug == "unknown-suffix" and "convert it" not in caught.value.hint


def test_a_name_can_be_given_and_suffixes_ignore_case(tmp_path, cloud):
    np.save(tmp_path / "v.npy", cloud())
    (tmp_path / "v.npy").rename(tmp_path / "V.NPY")
    source = open_source(tmp_path / "V.NPY", name="mine")
    assert source.name == next(source.chunks()).source == "mine"


def test_a_home_folder_is_found(tmp_path, cloud, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    np.save(tmp_path / "v.npy", cloud())
    np.save(tmp_path / "doc.npy", np.arange(50))
    assert open_source("~/v.npy", document="~/doc.npy").rows == 50


def test_key_and_column_are_one_thing(tmp_path, cloud):
    np.savez(tmp_path / "v.npz", a=cloud(), b=cloud(d=3))
    assert open_source(tmp_path / "v.npz", key="b").width == 3
    assert open_source(tmp_path / "v.npz", key="a", column="a").width == 4
    with pytest.raises(SourceError, match="cannot read column 'a' with key 'b'"):
        open_source(tmp_path / "v.npz", column="a", key="b")


def test_a_named_pipe_is_read_as_a_stream(tmp_path, cloud, whole):
    rows = cloud()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = io.BytesIO()
    np.save(content, rows)
    writer = threading.Thread(target=lambda: pipe.write_bytes(content.getvalue()))
    writer.start()
    source = open_source(pipe)
    np.testing.assert_array_equal(whole(source), rows)
    writer.join()
    assert not source.rereadable and source.name == "pipe"


@pytest.mark.parametrize("thing", [3, 2.5, {"a": 1}, b"bytes", None, {1, 2}])
def test_things_that_are_no_vectors_are_refused(thing):
    with pytest.raises(SourceError, match="expected a path, an array"):
        open_source(thing)


def test_a_source_says_what_it_is(tmp_path, cloud):
    np.save(tmp_path / "v.npy", cloud())
    source = open_source(tmp_path / "v.npy")
    assert isinstance(source, RowSource) and "function" not in repr(source)
    assert ".npy" in SUFFIXES


def test_importing_loads_numpy_and_nothing_else_heavy():
    code = (
        "import sys, isoscope.source; "
        "heavy = {'torch', 'pandas', 'polars', 'pyarrow', 'msgspec', 'safetensors'}; "
        "sys.exit(1 if heavy & set(sys.modules) else 0)"
    )
    path = str(Path(__file__).parents[2] / "src")
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": path}, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize(
    "alias", [(".pq", ".parquet"), (".ipc", ".arrow"), (".ndjson", ".jsonl")]
)
def test_other_suffixes_of_a_format_do(alias, tmp_path, cloud, write):
    other, suffix = alias
    path = write(tmp_path / f"v{suffix}", cloud())
    path = path.rename(path.with_suffix(other))
    assert open_file(path, VectorRequest()).width == 4


def test_suffixes_are_lower_case_and_begin_with_a_dot():
    assert all(each == each.lower() and each.startswith(".") for each in OPENERS)

"""Arrays in memory; and, slowly, that no reader holds a file of 1 GB in memory."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from isoscope.errors import RowError, SourceError
from isoscope.source import open_source

matrices = hnp.arrays(
    dtype=st.one_of(
        hnp.floating_dtypes(sizes=(16, 32, 64), endianness="?"), hnp.integer_dtypes()
    ),
    shape=hnp.array_shapes(min_dims=2, max_dims=2, max_side=8),
)


@given(rows=matrices, turned=st.booleans(), size=st.integers(1, 9))
def test_arrays_give_their_rows(rows, turned, size, whole):
    rows = rows.T if turned else rows
    source = open_source(rows)
    np.testing.assert_array_equal(whole(source, size), rows)
    assert source.name == "rows" and source.rows == len(rows) and source.rereadable


def test_chunks_are_views_of_the_array(cloud):
    rows = cloud()
    assert np.shares_memory(next(open_source(rows).chunks(7)).rows, rows)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "bool"])
@pytest.mark.parametrize("grad", [False, True])
def test_tensors_give_their_rows(dtype, grad, whole):
    torch.manual_seed(0)
    tensor = (torch.randn(50, 4) * 9).to(getattr(torch, dtype))
    expected = tensor.double().numpy()
    if grad and tensor.is_floating_point():
        tensor.requires_grad_()
    source = open_source(tensor)
    np.testing.assert_array_equal(whole(source, 7), expected)
    assert source.dtype == dtype
    assert source.fingerprint == open_source(tensor.detach().clone()).fingerprint


def test_a_float8_tensor_is_widened(whole):
    tensor = torch.randn(5, 3).to(torch.float8_e4m3fn)
    np.testing.assert_array_equal(whole(open_source(tensor)), tensor.float().numpy())


class FarTensor:
    """A tensor on another device: whole it cannot be had, only rows brought over one by one."""

    device = "far:0"

    def __init__(self, tensor, moved):
        self.tensor, self.moved = tensor, moved
        self.dtype, self.shape = tensor.dtype, tensor.shape

    def detach(self):
        return self

    def __getitem__(self, some):
        return FarTensor(self.tensor[some], self.moved)

    def float(self):
        return FarTensor(self.tensor.float(), self.moved)

    def cpu(self):
        self.moved.append(len(self.tensor))
        return self.tensor


def test_a_tensor_elsewhere_is_fetched_chunk_by_chunk(whole):
    moved = []
    tensor = torch.randn(50, 4).bfloat16()
    source = open_source(FarTensor(tensor, moved))
    np.testing.assert_array_equal(whole(source, 7), tensor.float().numpy())
    assert max(moved) == 7


@pytest.mark.parametrize(
    "rows",
    [
        [[1, 2], [3, 4]],
        ((1.0, 2.0), (3.0, 4.0)),
        [np.array([1, 2]), np.array([3, 4])],
        np.array([np.array([1, 2]), np.array([3, 4]), None], dtype=object)[:2],
        [torch.tensor([1, 2]), torch.tensor([3, 4])],
    ],
)
def test_sequences_of_rows_are_read(rows, whole):
    source = open_source(rows)
    np.testing.assert_array_equal(whole(source, 1), [[1, 2], [3, 4]])
    assert source.fingerprint


@pytest.mark.parametrize(
    ("rows", "words", "slug"),
    [
        (np.ones(3), "the array, got 1 dimension", "not-two-dimensional"),
        (np.array(1.0), "got 0 dimensions", "not-two-dimensional"),
        (np.ones((2, 2, 2)), "got 3 dimensions", "not-two-dimensional"),
        (np.ones((2, 0)), "got width 0", "width-zero"),
        (np.ones((0, 2)), "got 0 rows", "no-rows"),
        (np.ones((2, 2), dtype=complex), "got complex", "complex-numbers"),
        (np.array([["a"]]), "got strings", "strings"),
        (np.array([[None]]), "objects", "objects"),
        ([], "got 0 rows", "no-rows"),
        ([1, 2], "got 1 dimension", "not-two-dimensional"),
        (["a", "b"], "got strings", "strings"),
        ([[[1]]], "got 3 dimensions", "not-two-dimensional"),
        ([[1, [2]]], "expected rows of numbers in the list, got list", "vectors-kind"),
        (torch.ones(3), "the tensor, got 1 dimension", "not-two-dimensional"),
        (torch.ones(2, 2, dtype=torch.complex64), "got complex", "complex-numbers"),
        (torch.ones(2, 2, device="meta"), "float32 on meta", "tensor-kind"),
        (torch.eye(3).to_sparse(), "expected a dense tensor", "tensor-kind"),
        (np.ma.masked_equal([[1.0, 2.0]], 2.0), "masked", "masked"),
    ],
)
def test_what_is_no_array_of_vectors_is_refused(rows, words, slug):
    with pytest.raises(SourceError, match=words) as caught:
        open_source(rows)
    assert caught.value.slug == slug


def test_a_ragged_list_names_the_row(whole):
    source = open_source([[1, 2], [3, 4], [5]])
    with pytest.raises(RowError, match="expected 2 numbers in row 2 of the list"):
        whole(source, 2)


def test_the_fingerprint_tells_arrays_apart(cloud):
    rows = cloud(n=1000)
    prints = {
        open_source(each).fingerprint for each in (rows, rows + 1, rows[:-1], rows[:, :2])
    }
    assert len(prints) == 4
    assert open_source(rows.copy()).fingerprint in prints
    assert len(open_source(rows).fingerprint) == 32


WIDTH = 768
GIGABYTE = 1 << 30
LIMIT = 300  # MiB of anonymous memory at the peak, interpreter included

READER = """
import json, re, sys, threading, time
from pathlib import Path

peak = 0
def look():
    global peak
    status = Path("/proc/self/status").read_text()
    peak = max(peak, int(re.search(r"RssAnon:\\s+(\\d+)", status)[1]) / 1024)

def watch():
    while True:
        look()
        time.sleep(0.003)

threading.Thread(target=watch, daemon=True).start()
from isoscope.source import bad_rows, open_source

path, options = sys.argv[1], json.loads(sys.argv[2])
began = time.monotonic()
source = open_source(path, **options)
rows = 0
for chunk in source.chunks():
    assert not len(bad_rows(chunk))
    rows += len(chunk)
    look()
assert source.fingerprint
print(json.dumps({"peak": peak, "rows": rows, "seconds": time.monotonic() - began}))
"""


def block(n, dtype="float32"):
    rows = np.random.default_rng(5).normal(size=(n, WIDTH))
    return (rows * 20 if np.dtype(dtype).kind == "i" else rows).astype(dtype)


def repeated(path, piece, size=GIGABYTE, head=b""):
    """Write a piece again and again until the file has its size; return the repetitions."""
    times = -(-size // len(piece))
    with path.open("wb") as file:
        file.write(head)
        for _ in range(times):
            file.write(piece)
    return times


def big_npy(path, dtype="float32", fortran=False):
    n = GIGABYTE // (WIDTH * np.dtype(dtype).itemsize)
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": np.dtype(dtype).str, "fortran_order": fortran, "shape": (n, WIDTH)}
        )
        piece = block(1 << 12, dtype).tobytes()
        left = n * WIDTH * np.dtype(dtype).itemsize
        while left:
            left -= file.write(piece[:left])
    return n


def big_npz(path, compressed=False):
    import zipfile

    inner = path.with_suffix(".npy")
    n = big_npy(inner)
    documents = path.with_name("doc.npy")
    np.save(documents, np.array([f"document {i // 9}" for i in range(n)]))
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", method, compresslevel=1) as archive:
        archive.write(inner, "rows.npy")
        archive.write(documents, "doc.npy")
    inner.unlink(), documents.unlink()
    return n


def big_safetensors(path, name="F32", size=4):
    n = GIGABYTE // (WIDTH * size)
    entry = {"dtype": name, "shape": [n, WIDTH], "data_offsets": [0, n * WIDTH * size]}
    header = json.dumps({"rows": entry}).encode()
    raw = block(1 << 12).view(np.uint16)[:, 1::2] if size == 2 else block(1 << 12)
    piece = raw.tobytes()
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        left = n * WIDTH * size
        while left:
            left -= file.write(piece[:left])
    return n


def big_table(fixed):
    n = GIGABYTE // (WIDTH * 4)
    flat = pa.array(np.resize(block(1 << 12).reshape(-1), n * WIDTH))
    lists = pa.FixedSizeListArray.from_arrays(flat, WIDTH)
    documents = pa.array([f"document {i // 9}" for i in range(n)])
    if not fixed:
        offsets = pa.array(np.arange(n + 1, dtype=np.int32) * WIDTH)
        lists = pa.ListArray.from_arrays(offsets, flat)
    return pa.table({"doc": documents, "embedding": lists})


def big_parquet(path, fixed=False, **how):
    table = big_table(fixed)
    pq.write_table(table, path, row_group_size=len(table), **how)  # one group of 1 GB
    return len(table)


def big_arrow(path, stream=False, fixed=False, batch=None):
    table = big_table(fixed)
    maker = pa.ipc.new_stream if stream else pa.ipc.new_file
    with maker(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=batch)
    return len(table)


def big_feather(path):
    table = big_table(fixed=False)
    feather.write_feather(table, str(path))
    return len(table)


def big_jsonl(path, named=True):
    rows = block(200, "float64").tolist()
    text = [json.dumps({"text": "a b", "embedding": each} if named else each) for each in rows]
    return 200 * repeated(path, ("\n".join(text) + "\n").encode())


def big_csv(path, listed=False):
    rows = block(200, "float64").tolist()
    if listed:
        lines, head = [f'x,"{each}"' for each in rows], b"text,v\n"
    else:
        lines = ["x," + ",".join(map(repr, each)) for each in rows]
        head = ("text," + ",".join(f"e{i}" for i in range(WIDTH)) + "\n").encode()
    return 200 * repeated(path, ("\n".join(lines) + "\n").encode(), head=head)


def big_folder(path):
    path.mkdir()
    return big_npy(path / "a.npy") + big_parquet(path / "b.parquet")


BIG = {
    "npy": ("v.npy", big_npy, {}, {}),
    "npy of int8": ("v.npy", big_npy, {"dtype": "int8"}, {}),
    "npy in Fortran order": ("v.npy", big_npy, {"fortran": True}, {}),
    "npy of other bytes": ("v.npy", big_npy, {"dtype": ">f8"}, {}),
    "npz": ("v.npz", big_npz, {}, {"document": "doc"}),
    "npz deflated": ("v.npz", big_npz, {"compressed": True}, {"document": "doc"}),
    "safetensors": ("v.safetensors", big_safetensors, {}, {}),
    "safetensors of bfloat16": (
        "v.safetensors", big_safetensors, {"name": "BF16", "size": 2}, {}
    ),
    "parquet": ("v.parquet", big_parquet, {}, {"document": "doc"}),
    "parquet of fixed lists": (
        "v.parquet", big_parquet, {"fixed": True, "compression": "zstd"}, {"document": "doc"}
    ),
    "arrow": ("v.arrow", big_arrow, {}, {"document": "doc"}),
    "arrow stream": (
        "v.arrow", big_arrow, {"stream": True, "batch": 8192}, {"document": "doc"}
    ),
    "feather": ("v.feather", big_feather, {}, {"document": "doc"}),
    "jsonl": ("v.jsonl", big_jsonl, {}, {"text": "text"}),
    "jsonl of lists": ("v.jsonl", big_jsonl, {"named": False}, {}),
    "csv": ("v.csv", big_csv, {}, {"text": "text"}),
    "csv of lists": ("v.csv", big_csv, {"listed": True}, {}),
    "folder": ("many", big_folder, {}, {}),
}  # fmt: skip
PIPED = {
    "npy": BIG["npy"],
    "arrow": ("v.arrow", big_arrow, {"stream": True, "fixed": True, "batch": 8192}, {}),
    "jsonl": BIG["jsonl of lists"],
    "csv": BIG["csv"],
}


def peak_of_reading(path, options, stdin=None):
    done = subprocess.run(
        [sys.executable, "-c", READER, str(path), json.dumps(options)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
        stdin=stdin,
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("name", BIG)
def test_a_file_of_a_gigabyte_takes_less_than_300_mib(name, tmp_path):
    file, make, how, options = BIG[name]
    path = tmp_path / file
    rows = make(path, **how)
    try:
        found = peak_of_reading(path, options)
        print(name, found)
        assert found["rows"] == rows
        assert found["peak"] < LIMIT
    finally:
        shutil.rmtree(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", PIPED)
def test_a_gigabyte_on_standard_input_takes_less_than_300_mib(name, tmp_path):
    file, make, how, options = PIPED[name]
    path = tmp_path / file
    rows = make(path, **how)
    try:
        with subprocess.Popen(["cat", str(path)], stdout=subprocess.PIPE) as cat:
            found = peak_of_reading("-", options, stdin=cat.stdout)
        print(name, found)
        assert found["rows"] == rows
        assert found["peak"] < LIMIT
    finally:
        shutil.rmtree(tmp_path)

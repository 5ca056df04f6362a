"""Every reader on a gigabyte: peak anonymous memory below 300 MiB, interpreter included."""

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
import numpy as np
from isoscope.source import open_source

path, options = sys.argv[1], json.loads(sys.argv[2])
began = time.monotonic()
source = open_source(path, **options)
rows = 0
for chunk in source.chunks():
    assert np.isfinite(chunk.rows).all()
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

"""Writers of every format and a reader of the whole, for the tests of all readers."""

import json
from pathlib import Path

import numpy as np
import pytest

DTYPES = ["float16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool"]
FORMATS = ["npy", "npz", "safetensors", "parquet", "arrow", "feather", "jsonl", "csv", "tsv"]
TYPED = FORMATS[:6]  # those that store the dtype


def make_rows(n=50, d=4, dtype="float32", seed=7):
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return rng.normal(size=(n, d)).astype(kind)
    if kind.kind == "b":
        return rng.integers(0, 2, size=(n, d)).astype(bool)
    info = np.iinfo(kind)
    low, high = max(info.min, -(2**40)), min(info.max, 2**40)
    return rng.integers(low, high, size=(n, d)).astype(kind)


def list_column(rows, *, fixed=False):
    import pyarrow as pa

    flat = pa.array(rows.reshape(-1))
    column = pa.FixedSizeListArray.from_arrays(flat, rows.shape[1])
    return column if fixed else column.cast(pa.list_(flat.type))


def make_table(rows, labels=None, *, fixed=False):
    import pyarrow as pa

    return pa.table({**(labels or {}), "embedding": list_column(rows, fixed=fixed)})


def write_file(path: Path, rows, labels=None, **how):
    """Write rows and labels (a dictionary of lists) in the format of the suffix."""
    labels = labels or {}
    WRITERS[path.suffix](path, rows, labels, **how)
    return path


def _npy(path, rows, labels):
    np.save(path, rows)
    for name, values in labels.items():
        np.save(path.with_name(f"{name}.npy"), np.array(values))


def _npz(path, rows, labels, compressed=False):
    save = np.savez_compressed if compressed else np.savez
    save(path, embedding=rows, **{name: np.array(each) for name, each in labels.items()})


def _safetensors(path, rows, labels):
    from safetensors.numpy import save_file

    extra = {name: np.array(each) for name, each in labels.items()}
    save_file({"embedding": np.ascontiguousarray(rows), **extra}, path)


def _parquet(path, rows, labels, fixed=False, **how):
    import pyarrow.parquet as pq

    pq.write_table(make_table(rows, labels, fixed=fixed), path, **how)


def _arrow(path, rows, labels, fixed=False, stream=False, batch=None):
    import pyarrow as pa

    table = make_table(rows, labels, fixed=fixed)
    maker = pa.ipc.new_stream if stream else pa.ipc.new_file
    with maker(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=batch)


def _feather(path, rows, labels):
    import pyarrow.feather as feather

    feather.write_feather(make_table(rows, labels), str(path))


def _jsonl(path, rows, labels):
    with path.open("w") as file:
        for i, row in enumerate(np.asarray(rows, dtype=np.float64).tolist()):
            line = {name: each[i] for name, each in labels.items()}
            file.write(json.dumps({**line, "embedding": row} if line else row) + "\n")


def _csv(path, rows, labels, separator=",", header=True):
    values = np.asarray(rows, dtype=np.float64).tolist()
    with path.open("w") as file:
        if header:
            names = [*labels, *(f"e{i}" for i in range(len(values[0])))]
            file.write(separator.join(names) + "\n")
        for i, row in enumerate(values):
            cells = [*(str(each[i]) for each in labels.values()), *(repr(x) for x in row)]
            file.write(separator.join(cells) + "\n")


WRITERS = {
    ".npy": _npy,
    ".npz": _npz,
    ".safetensors": _safetensors,
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".feather": _feather,
    ".jsonl": _jsonl,
    ".csv": _csv,
    ".tsv": lambda path, rows, labels: _csv(path, rows, labels, separator="\t"),
}


@pytest.fixture(scope="session")
def cloud():
    return make_rows


@pytest.fixture(scope="session")
def write():
    return write_file


@pytest.fixture(scope="session")
def table():
    return make_table


@pytest.fixture(scope="session")
def whole():
    """All rows of a source; each chunk is checked on the way."""

    def read(source, rows=None):
        parts = []
        count = 0
        for chunk in source.chunks(rows):
            assert chunk.rows.dtype in (np.float32, np.float64)
            assert chunk.rows.ndim == 2 and chunk.rows.shape[1] == source.width
            assert rows is None or len(chunk) <= rows
            if chunk.ordinals is None and not source.parts:
                assert chunk.start == count + source.skipped
            count += len(chunk)
            parts.append(chunk.rows)
        if source.rows is not None:
            assert count + source.skipped == source.rows
        return np.concatenate(parts)

    return read


@pytest.fixture(scope="session")
def labels():
    """What a source carries along, over all chunks: documents, ids, texts."""

    def read(source, rows=7):
        found = {"documents": [], "ids": [], "texts": []}
        for chunk in source.chunks(rows):
            for name, values in found.items():
                carried = getattr(chunk, name)
                if carried is not None:
                    assert len(carried) == len(chunk)
                    values.extend(list(carried))
        return found

    return read

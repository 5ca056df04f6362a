"""Writers of corpora of every kind, and the laws that each of them keeps."""

import json
import struct

import numpy as np
import pytest

TEXTS = ["the cat sat", "ein Hund läuft", "日本語の文", "a b\tc", 'she said "no"']


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_parquet(path, **columns):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path, row_group_size=3)
    return path


def write_wav(path, seconds=0.1, rate=8000, channels=1, seed=1, **how):
    import soundfile

    rng = np.random.default_rng(seed)
    samples = rng.uniform(-0.5, 0.5, size=(round(seconds * rate), channels))
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, samples, rate, **how)
    return samples


def write_image(path, size=(5, 4), mode="RGB", seed=1, **how):
    from PIL import Image

    rng = np.random.default_rng(seed)
    width, height = size
    pixels = rng.integers(0, 256, size=(height, width, 3)).astype(np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).convert(mode).save(path, **how)
    return pixels


def idx_bytes(images):
    return struct.pack(">HBBIII", 0, 8, 3, *images.shape) + images.tobytes()


def make_images(n=6, height=4, width=3, seed=1):
    shape = (n, height, width)
    return np.random.default_rng(seed).integers(0, 256, size=shape).astype(np.uint8)


def same(one, other):
    """Whether two documents are equal, arrays included."""
    assert (one.id, one.target, one.rate, one.place) == (
        other.id, other.target, other.rate, other.place,
    )  # fmt: skip
    assert type(one.content) is type(other.content)
    if isinstance(one.content, np.ndarray):
        assert one.content.dtype == other.content.dtype
    np.testing.assert_array_equal(one.content, other.content)
    return True


@pytest.fixture(scope="session")
def jsonl():
    return write_jsonl


@pytest.fixture(scope="session")
def parquet():
    return write_parquet


@pytest.fixture(scope="session")
def wav():
    return write_wav


@pytest.fixture(scope="session")
def picture():
    return write_image


@pytest.fixture(scope="session")
def texts():
    return list(TEXTS)


@pytest.fixture(scope="session")
def idx():
    return idx_bytes


@pytest.fixture(scope="session")
def images():
    return make_images


@pytest.fixture(scope="session")
def alike():
    return same


def _txt(root):
    path = root / "notes.txt"
    path.write_text("\n\n".join(TEXTS) + "\n", encoding="utf-8")
    return path, {}


def _gz(root):
    import gzip

    path = root / "notes.txt.gz"
    path.write_bytes(gzip.compress("\n".join(TEXTS).encode()))
    return path, {}


def _folder(root, **how):
    (root / "sub").mkdir()
    for i, text in enumerate(TEXTS):
        name = f"sub/{i}.txt" if i % 2 else f"{i}.txt"
        (root / name).write_text(f"{text}\nsecond line", encoding="utf-8")
    return root, how


def _rows():
    return [{"id": f"d{i}", "text": each, "said": f"t{i}"} for i, each in enumerate(TEXTS)]


def _jsonl(root):
    return write_jsonl(root / "a.jsonl", _rows()), {}


def _named(root):
    write_jsonl(root / "a.jsonl", _rows()[:2])
    write_jsonl(root / "b.jsonl", _rows()[2:])
    return root, {"id": "id", "target": "said"}


def _table(root, suffix, separator):
    path = root / f"a{suffix}"
    rows = [[each["id"], each["text"].replace("\t", " ")] for each in _rows()]
    quoted = [[f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in row] for row in rows]
    body = "".join(separator.join(row) + "\n" for row in [["id", "text"], *quoted])
    path.write_text(body, encoding="utf-8")
    return path, {"id": "id"}


def _parquet(root):
    columns = {name: [row[name] for row in _rows()] for name in ("id", "text", "said")}
    return write_parquet(root / "a.parquet", **columns), {"target": "said"}


def _tokens(root):
    np.save(root / "t.npy", np.random.default_rng(3).integers(0, 999, size=(7, 12)))
    return root / "t.npy", {}


def _stream(root):
    np.save(root / "t.npy", np.arange(50, dtype=np.uint16))
    return root / "t.npy", {"length": 8}


def _audio(root):
    for i in range(4):
        write_wav(root / f"s{i % 2}" / f"{i}.wav", seed=i, channels=1 + i % 2)
        (root / f"s{i % 2}" / f"{i}.txt").write_text(f"say {i}")
    return root, {}


def _images(root):
    for i in range(4):
        write_image(root / f"s{i % 2}" / f"{i}.png", seed=i)
    return root, {}


def _idx(root):
    (root / "t-images-idx3-ubyte").write_bytes(idx_bytes(make_images()))
    return root / "t-images-idx3-ubyte", {}


def _in(make, *arguments, **how):
    def made_in(root):
        root.mkdir()
        return make(root, *arguments, **how)

    return made_in


MAKERS = {
    "list": lambda _root: (list(TEXTS), {}),
    "txt": _in(_txt),
    "gz": _in(_gz),
    "folder": _in(_folder),
    "lines": _in(_folder, per="line"),
    "jsonl": _in(_jsonl),
    "named": _in(_named),
    "csv": _in(_table, ".csv", ","),
    "tsv": _in(_table, ".tsv", "\t"),
    "parquet": _in(_parquet),
    "tokens": _in(_tokens),
    "stream": _in(_stream),
    "audio": _in(_audio),
    "images": _in(_images),
    "idx": _in(_idx),
    "bundled": lambda _root: (None, {}),
}


@pytest.fixture(params=list(MAKERS))
def made(request, tmp_path):
    """A corpus of each kind, as arguments of open_corpus, below a folder that can move."""
    return MAKERS[request.param](tmp_path / "here")

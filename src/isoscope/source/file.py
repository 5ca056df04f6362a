"""A file of vectors, read as its suffix says."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from isoscope.errors import SourceError
from isoscope.source.arrow import open_arrow
from isoscope.source.csv import open_csv
from isoscope.source.feed import Feed, file_feed
from isoscope.source.jsonl import open_jsonl
from isoscope.source.npy import open_npy
from isoscope.source.npz import open_npz
from isoscope.source.parquet import open_parquet
from isoscope.source.safetensors import open_safetensors
from isoscope.source.source import Source, Wanted

OPENERS: dict[str, Callable[[Feed, Wanted], Source]] = {
    ".npy": open_npy,
    ".npz": open_npz,
    ".safetensors": open_safetensors,
    ".parquet": open_parquet,
    ".pq": open_parquet,
    ".arrow": open_arrow,
    ".arrows": open_arrow,
    ".ipc": open_arrow,
    ".feather": open_arrow,
    ".jsonl": open_jsonl,
    ".ndjson": open_jsonl,
    ".csv": open_csv,
    ".tsv": partial(open_csv, separator="\t"),
}

_ADVICE = {
    ".pt": "pickles can run code and are not opened: save as safetensors or npy",
    ".pth": "pickles can run code and are not opened: save as safetensors or npy",
    ".pkl": "pickles can run code and are not opened: save as safetensors or npy",
    ".bin": "save the vectors as npy or safetensors",
    ".json": "write one list or object a line and call it .jsonl",
    ".gz": "unpack it into a pipe: zcat vectors.csv.gz | isoscope measure -",
    ".txt": "call it .csv if its cells are separated by commas, .tsv if by tabs",
}


def open_file(path: Path, wanted: Wanted, name: str | None = None) -> Source:
    """The rows of one file."""
    suffix = path.suffix.lower()
    if suffix not in OPENERS:
        raise SourceError(
            f"expected a file ending in {', '.join(OPENERS)}, got {path}",
            hint=_ADVICE.get(suffix, "convert it, or give it the suffix of its format"),
            slug="unknown-suffix",
        )
    return OPENERS[suffix](file_feed(path, name or path.stem), wanted)

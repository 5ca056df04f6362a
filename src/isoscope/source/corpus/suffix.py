"""What a file is, going by its name."""

import re

from isoscope.source.corpus.corpus import Kind

TEXT = frozenset({".txt", ".text", ".md", ".smi"})
AUDIO = frozenset(
    {".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aiff", ".aif", ".au", ".caf", ".w64"}
)
IMAGE = frozenset(
    {".png", ".jpg", ".jpeg", ".bmp", ".webp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"}
)
FORMATS: dict[str, str] = {
    **dict.fromkeys(TEXT, "text"),
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npy": "npy",
    **dict.fromkeys(AUDIO, "audio"),
    **dict.fromkeys(IMAGE, "image"),
}
KIND_OF: dict[str, Kind] = {
    "text": "text", "jsonl": "text", "csv": "text", "tsv": "text", "parquet": "text",
    "npy": "tokens", "audio": "audio", "image": "image", "idx": "image",
}  # fmt: skip
PACKED = ("text", "jsonl", "csv", "tsv")  # what may end in .gz besides
POSSIBLE = (
    "text (.txt, .md), jsonl, parquet, csv, tsv, token ids (.npy), audio (.wav, .flac, ...), "
    "images (.png, .jpg, ...) or idx"
)
_IDX = re.compile(r"[.-]idx\d-ubyte(\.gz)?$")
_LABELS = re.compile(r"[.-]idx1-ubyte(\.gz)?$")


def format_of(name: str) -> str | None:
    """The format that the name of a file stands for, or None."""
    low = name.lower()
    if _IDX.search(low):
        return "idx"
    packed = low.endswith(".gz")
    stem = low.removesuffix(".gz")
    found = FORMATS.get(stem[stem.rfind(".") :]) if "." in stem else None
    return None if packed and found not in PACKED else found


def is_labels(name: str) -> bool:
    """Whether a file has the labels of images in another one."""
    return _LABELS.search(name.lower()) is not None

"""What a file of a corpus is, by its name, its content or the request, and its reader."""

import re
from collections.abc import Callable
from pathlib import Path

from isoscope.errors import SourceError
from isoscope.source.border import border, describe_content
from isoscope.source.bytes import FileBytes, RandomBytes, open_text
from isoscope.source.corpus.audio import AudioFiles
from isoscope.source.corpus.corpus import Corpus
from isoscope.source.corpus.pictures import IdxImages, ImageFiles
from isoscope.source.corpus.plain_text import HEAD, TextFiles, is_text, open_lines
from isoscope.source.corpus.tables import open_csv, open_jsonl, open_parquet, open_tsv
from isoscope.source.corpus.token_ids import TokenIds
from isoscope.source.corpus.transcript import AUDIO
from isoscope.source.faults import no_documents
from isoscope.source.request import CorpusRequest, Kind

TEXT = (".txt", ".text", ".md", ".smi")
IMAGE = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".gif", ".tif", ".tiff", ".ppm", ".pgm")
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
    **dict.fromkeys(("text", "jsonl", "csv", "tsv", "parquet"), "text"),
    "npy": "tokens",
    "audio": "audio",
    "image": "image",
    "idx": "image",
}
LINES: dict[str, Callable[[RandomBytes, CorpusRequest], Corpus]] = {
    "text": open_lines,
    "jsonl": open_jsonl,
    "csv": open_csv,
    "tsv": open_tsv,
}  # these may also end in .gz
POSSIBLE = (
    "text (.txt, .md), jsonl, parquet, csv, tsv, token ids (.npy), audio (.wav, .flac, ...), "
    "images (.png, .jpg, ...) or idx"
)
_PLAIN: dict[Kind, str] = {"text": "text", "tokens": "npy", "audio": "audio", "image": "image"}
_UNPACK = "unpack it and name the folder"
_NO_PICKLES = "pickles can run code and are not opened: save token ids as npy"
_ADVICE = {
    ".json": "write one object per line and call it .jsonl",
    ".npz": "save the token ids alone, with np.save",
    ".zip": _UNPACK,
    ".tar": _UNPACK,
    ".tgz": _UNPACK,
    ".gz": "unpack it first; only text, jsonl, csv, tsv and idx may stay packed",
    ".pt": _NO_PICKLES,
    ".pkl": _NO_PICKLES,
}
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
    return None if packed and found not in LINES else found


def is_labels(name: str) -> bool:
    """Whether a file has the labels of images in another one."""
    return _LABELS.search(name.lower()) is not None


def open_file(path: Path, request: CorpusRequest, name: str) -> Corpus:
    """The documents of one file."""
    with border(str(path)):
        if path.stat().st_size == 0:
            raise no_documents(str(path), "an empty file")
    found = _choose_format(path, request)
    if found == "audio":
        return AudioFiles([path], None, request)
    if found == "image":
        return ImageFiles([path], None, request)
    if found == "idx":
        return IdxImages(path, name, request)
    if found == "npy":
        return TokenIds(path, name, request)
    if request.per == "file":
        return TextFiles([path], None, request)
    if found == "parquet":
        return open_parquet(FileBytes(path, name), request)
    return LINES[found](open_text(path, name), request)


def _choose_format(path: Path, request: CorpusRequest) -> str:
    """How to read a file: by the request, then by its name, and last by its content."""
    found = format_of(path.name)
    if request.kind is not None and (found is None or KIND_OF[found] != request.kind):
        return _PLAIN[request.kind]
    if request.per is not None and found in ("jsonl", "csv", "tsv"):
        return "text"  # as it stands, not column by column
    if found is not None:
        return found
    suffix = path.suffix.lower()
    with border(str(path)), path.open("rb") as file:
        head = file.read(HEAD)
    if suffix not in _ADVICE and is_text(head) and _is_utf8(head):
        return "text"
    what = f"a {suffix} file" if suffix in _ADVICE else describe_content(head)
    raise SourceError(
        f"expected a corpus at {path}, got {what}",
        hint=_ADVICE.get(suffix, f"a corpus is {POSSIBLE}; --kind says which"),
        slug="corpus-kind",
    )


def _is_utf8(head: bytes) -> bool:
    """Whether bytes are UTF-8, except for a character cut in two at the end."""
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return len(head) == HEAD and error.start >= len(head) - 3
    return True

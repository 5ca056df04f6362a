"""One file as a corpus, read as its name, its content or the caller says."""

from collections.abc import Callable
from pathlib import Path

from isoscope.errors import SourceError
from isoscope.source.border import border
from isoscope.source.corpus.audio import Audio
from isoscope.source.corpus.corpus import Corpus, Kind
from isoscope.source.corpus.csv import open_csv, open_tsv
from isoscope.source.corpus.fault import nothing
from isoscope.source.corpus.held import Held, OnDisk, unpacked
from isoscope.source.corpus.idx import Idx
from isoscope.source.corpus.image import Images
from isoscope.source.corpus.jsonl import open_jsonl
from isoscope.source.corpus.lines import HEAD, is_text, open_lines
from isoscope.source.corpus.parquet import open_parquet
from isoscope.source.corpus.suffix import KIND_OF, POSSIBLE, format_of
from isoscope.source.corpus.tokens import Tokens
from isoscope.source.corpus.wanted import Wanted
from isoscope.source.corpus.whole import WholeFiles
from isoscope.source.magic import described

HELD: dict[str, Callable[[Held, str, Wanted], Corpus]] = {
    "text": open_lines,
    "jsonl": open_jsonl,
    "csv": open_csv,
    "tsv": open_tsv,
}
_PLAIN: dict[Kind, str] = {"text": "text", "tokens": "npy", "audio": "audio", "image": "image"}
_ADVICE = {
    ".json": "write one object a line and call it .jsonl",
    ".npz": "save the token ids alone, with np.save",
    ".zip": "unpack it and name the folder",
    ".tar": "unpack it and name the folder",
    ".tgz": "unpack it and name the folder",
    ".gz": "unpack it first; only text, jsonl, csv, tsv and idx may stay packed",
    ".pt": "pickles can run code and are not opened: save token ids as npy",
    ".pkl": "pickles can run code and are not opened: save token ids as npy",
}


def open_file(path: Path, wanted: Wanted, name: str) -> Corpus:
    """The documents of one file."""
    with border(str(path)):
        if path.stat().st_size == 0:
            raise nothing(str(path), "an empty file")
    found = _format(path, wanted)
    if found == "audio":
        return Audio([path], None, wanted)
    if found == "image":
        return Images([path], None, wanted)
    if found == "idx":
        return Idx(path, name, wanted)
    if found == "npy":
        return Tokens(path, name, wanted)
    if wanted.per == "file":
        return WholeFiles([path], None, wanted)
    if found == "parquet":
        return open_parquet(path, name, wanted)
    held = unpacked(path) if path.suffix.lower() == ".gz" else OnDisk(path)
    return HELD[found](held, name, wanted)


def _format(path: Path, wanted: Wanted) -> str:
    """How to read a file: the caller's word, its name, and last what it looks like."""
    found = format_of(path.name)
    if wanted.kind is not None and (found is None or KIND_OF[found] != wanted.kind):
        return _PLAIN[wanted.kind]
    if wanted.per is not None and found in ("jsonl", "csv", "tsv"):
        return "text"  # as it stands, not column by column
    if found is not None:
        return found
    suffix = path.suffix.lower()
    with border(str(path)), path.open("rb") as file:
        head = file.read(HEAD)
    if suffix not in _ADVICE and is_text(head) and _is_utf8(head):
        return "text"
    what = f"a {suffix} file" if suffix in _ADVICE else described(head)
    raise SourceError(
        f"expected a corpus at {path}, got {what}",
        hint=_ADVICE.get(suffix, f"a corpus is {POSSIBLE}; --kind says which"),
        slug="corpus-kind",
    )


def _is_utf8(head: bytes) -> bool:
    """Whether bytes are UTF-8, but for a character that the end cuts in two."""
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return len(head) == HEAD and error.start >= len(head) - 3
    return True

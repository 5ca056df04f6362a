"""Open a corpus: a path, a folder, standard input, a list of texts or the bundled text."""

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, Literal, cast

import numpy as np

from isoscope.errors import SourceError
from isoscope.registry import unknown
from isoscope.source.bytes import FileBytes, RandomBytes, copy_stream, open_text
from isoscope.source.corpus.audio import AUDIO, AudioFiles, is_companion
from isoscope.source.corpus.corpus import (
    KINDS,
    CombinedCorpus,
    Corpus,
    CorpusRequest,
    Kind,
    file_id,
)
from isoscope.source.corpus.pictures import IdxImages, ImageFiles
from isoscope.source.corpus.text_tables import open_csv, open_jsonl, open_parquet, open_tsv
from isoscope.source.corpus.texts import (
    HEAD,
    TextFiles,
    TextList,
    is_text,
    open_default,
    open_lines,
    open_whole,
)
from isoscope.source.corpus.token_ids import TokenIds
from isoscope.source.file_errors import border, describe_content, no_documents, printable
from isoscope.source.paths import STDIN, list_files, open_path

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
FILES: dict[str, Callable[[Sequence[Path], Path | None, CorpusRequest], Corpus]] = {
    "audio": AudioFiles,
    "image": ImageFiles,
}
ARRAYS: dict[str, Callable[[Path, str, CorpusRequest], Corpus]] = {
    "idx": IdxImages,
    "npy": TokenIds,
}
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
_LABELS = re.compile(r"[.-]idx1-ubyte(\.gz)?$")  # of images in another file
MEDIA = ("audio", "image", "idx")
_BESIDE = ("readme", "license", "licence", "copying", "notice", "changelog")


def open_corpus(
    where: str | os.PathLike[str] | Sequence[str] | None = None,
    *,
    column: str | None = None,
    target: str | None = None,
    id: str | None = None,
    per: Literal["line", "file"] | None = None,
    kind: str | None = None,
    skip_bad: bool = False,
    length: int = 512,
    label: str | None = None,
) -> Corpus:
    """Open a corpus: documents are found and checked here, and loaded on demand.

    None is the bundled text, "-" standard input, a list its own entries. `column`,
    `target`, `id` and `label` name columns of jsonl, parquet, csv and tsv. `per` cuts text into
    documents: by lines, or not at all. `kind` says what files are where names do not, or
    which of them to read. With `skip_bad`, documents that cannot be read are dropped and
    counted. A plain stream of token ids is cut into documents of `length`.
    """
    if kind not in (None, *KINDS):
        raise unknown("corpus kind", str(kind), KINDS)
    if per not in (None, "line", "file"):
        raise _wrong_per(
            f"expected documents per 'line' or 'file', got {printable(str(per))!r}"
        )
    if per is not None and (column or target or id or label):
        raise _wrong_per(f"cannot read a document per {per} with a column")
    request = CorpusRequest(column, target, id, per, kind, skip_bad, length, label)
    corpus = _open(where, request)
    if per is not None and corpus.kind != "text":
        raise _wrong_per(
            f"cannot read a document per {per} with {corpus.kind} in {corpus.place}"
        )
    if not len(corpus):
        dropped = "only empty or unreadable ones" if len(corpus.dropped) else "none"
        raise no_documents(corpus.place, dropped)
    if id is not None:
        _check_ids(corpus)
    return corpus


def open_folder(folder: Path, request: CorpusRequest) -> Corpus:
    """The documents of all files below a folder."""
    formats = _choose_files(list_files(folder, "a corpus"), request, str(folder))
    paths = list(formats)
    kinds = set(formats.values())
    name = folder.name or folder.resolve().name
    if kinds == {"audio"}:
        return AudioFiles(paths, folder, request)
    if "image" in kinds:
        images = [path for path in paths if formats[path] == "image"]
        idx = [path for path in paths if formats[path] == "idx"]
        corpus = ImageFiles(images, folder, request)
        others = [open_file(path, request, file_id(path, folder)) for path in idx]
        return CombinedCorpus([corpus, *others], name, str(folder)) if idx else corpus
    if request.per == "file" or (kinds == {"text"} and request.per is None):
        return TextFiles(paths, folder, request)
    with border(str(folder)):
        filled = [path for path in paths if path.stat().st_size]
    if not filled:
        raise no_documents(str(folder), "only empty files")
    parts = [open_file(path, request, file_id(path, folder)) for path in filled]
    corpus = CombinedCorpus(parts, name, str(folder))
    for path in sorted(set(paths) - set(filled)):
        corpus.dropped.add("empty files", str(path))
    return corpus


def _open(
    where: str | os.PathLike[str] | Sequence[str] | None, request: CorpusRequest
) -> Corpus:
    if where is None:
        return open_default(request)
    if not isinstance(where, str | os.PathLike):
        if isinstance(cast(object, where), Sequence):
            return TextList(where, request)
        raise SourceError(
            f"expected a path or a list of texts as corpus, got {type(where).__name__}",
            hint="save arrays of token ids with np.save and pass the path",
            slug="corpus-kind",
        )
    return open_path(
        Path(where).expanduser(),
        "text",
        "pipe it in: cat text.txt | isoscope survey MODEL - -o RUN",
        stream=lambda stream, name, place: _open_stream(stream, name, place, request),
        folder=lambda path: open_folder(path, request),
        file=lambda path: open_file(path, request, file_id(path, None)),
    )


def _open_stream(stream: BinaryIO, name: str, place: str, request: CorpusRequest) -> Corpus:
    """Text from a pipe, of which a temporary copy is made; with a column, jsonl."""
    if request.kind not in (None, "text"):
        raise SourceError(
            f"expected text on {place}, got kind {request.kind!r}",
            hint="save it to a file and pass its path",
            slug="corpus-kind",
        )
    copy = copy_stream(stream, name, place)
    if place != STDIN:
        stream.close()
    if request.columns:
        return open_jsonl(copy, request)
    return open_whole(copy, request) if request.per == "file" else open_lines(copy, request)


def _choose_files(paths: Sequence[Path], request: CorpusRequest, place: str) -> dict[Path, str]:
    """The files that are documents, with their formats, which have to be compatible."""
    if not paths:
        raise no_documents(place, "an empty folder")
    known = {path: found for path in paths if (found := format_of(path.name)) is not None}
    if request.kind is not None:
        known = {path: each for path, each in known.items() if KIND_OF[each] == request.kind}
    media = {path.with_suffix("") for path, each in known.items() if each in MEDIA}
    chosen = {
        path: each
        for path, each in known.items()
        if not _is_beside(path, each, media) or len(known) == 1
    }
    if not chosen:
        of_kind = "" if request.kind is None else f" of kind {request.kind!r}"
        raise SourceError(
            f"expected a corpus{of_kind} in {place}, got {_count_suffixes(paths)}",
            hint=f"a corpus is {POSSIBLE}; links that lead out are not followed",
            slug="corpus-kind",
        )
    formats = set(chosen.values())
    if len(formats) > 1 and formats != {"image", "idx"}:
        kinds = dict.fromkeys(KIND_OF[each] for each in chosen.values())
        raise SourceError(
            f"expected files of one format in {place}, got {_count_suffixes(list(chosen))}",
            hint=f"choose with --kind: {' or '.join(kinds)}"
            if len(kinds) > 1
            else "name one of the files, or move those of one format into another folder",
            slug="corpus-mixed",
        )
    return chosen


def _is_beside(path: Path, found: str, media: set[Path]) -> bool:
    """Whether a file only accompanies others: a licence, a transcript, labels."""
    name = path.name.lower()
    if _LABELS.search(name) or (found == "text" and name.startswith(_BESIDE)):
        return True
    if KIND_OF[found] != "text" or not media:
        return False
    companion = is_companion(name) or name.startswith(("metadata.", "labels."))
    return companion or path.with_suffix("") in media


def _count_suffixes(paths: Sequence[Path]) -> str:
    """Files by suffix, such as "12 .wav, 3 .txt"."""
    count = Counter(printable(path.suffix.lower()) or "without suffix" for path in paths)
    listed = [f"{n} {suffix}" for suffix, n in count.most_common(6)]
    return ", ".join(listed) + (", ..." if len(count) > 6 else "")


def _check_ids(corpus: Corpus) -> None:
    """Refuse ids that occur twice: intervals are computed over documents."""
    keys = corpus.keys()
    order = np.argsort(keys, kind="stable")
    twice = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    if len(twice):
        first, second = (corpus.document(int(order[twice[0] + i])) for i in (0, 1))
        raise SourceError(
            f"expected an id for each document, got {printable(first.id)!r} "
            f"in {first.place} and again in {second.place}",
            hint="name a column without repeats, or none: documents are then numbered",
            slug="id-twice",
        )


def _wrong_per(problem: str) -> SourceError:
    return SourceError(
        problem,
        hint="columns are for jsonl, parquet, csv and tsv; line and file for plain text",
        slug="corpus-per",
    )


def format_of(name: str) -> str | None:
    """The format that the name of a file stands for, or None."""
    low = name.lower()
    if _IDX.search(low):
        return "idx"
    packed = low.endswith(".gz")
    stem = low.removesuffix(".gz")
    found = FORMATS.get(stem[stem.rfind(".") :]) if "." in stem else None
    return None if packed and found not in LINES else found


def open_file(path: Path, request: CorpusRequest, name: str) -> Corpus:
    """The documents of one file."""
    with border(str(path)):
        if path.stat().st_size == 0:
            raise no_documents(str(path), "an empty file")
    found = _choose_format(path, request)
    if found in FILES:
        return FILES[found]([path], None, request)
    if found in ARRAYS:
        return ARRAYS[found](path, name, request)
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

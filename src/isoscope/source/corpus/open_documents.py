"""What a path, a dash, a list of texts or nothing becomes: a corpus of documents."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

import numpy as np

from isoscope.errors import SourceError
from isoscope.registry import unknown
from isoscope.source.border import border, shown
from isoscope.source.corpus.corpus import KINDS, Corpus
from isoscope.source.corpus.default import open_default
from isoscope.source.corpus.fault import nothing
from isoscope.source.corpus.file import open_file
from isoscope.source.corpus.files import file_id
from isoscope.source.corpus.folder import open_folder
from isoscope.source.corpus.held import spooled
from isoscope.source.corpus.jsonl import open_jsonl
from isoscope.source.corpus.lines import open_lines
from isoscope.source.corpus.memory import Memory
from isoscope.source.corpus.wanted import Wanted
from isoscope.source.corpus.whole import open_spooled

STDIN = "standard input"


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
    """Open a corpus: documents are found and checked here, and loaded when asked for.

    Nothing is the bundled text, "-" standard input, a list its own entries. `column`,
    `target`, `id` and `label` name columns of jsonl, parquet, csv and tsv. `per` cuts text into
    documents: by lines, or not at all. `kind` says what files are where names do not, or
    which of them to take. With `skip_bad`, documents that cannot be read are dropped and
    counted. A plain stream of token ids is cut into documents of `length`.
    """
    if kind is not None and kind not in KINDS:
        raise unknown("corpus kind", kind, KINDS)
    if per not in (None, "line", "file"):
        raise _per(f"expected documents per 'line' or 'file', got {shown(str(per))!r}")
    if per is not None and (column or target or id or label):
        raise _per(f"cannot read a document per {per} with a column")
    wanted = Wanted(column, target, id, per, kind, skip_bad, length, label)
    corpus = _opened(where, wanted)
    if per is not None and corpus.kind != "text":
        raise _per(f"cannot read a document per {per} with {corpus.kind} in {corpus.place}")
    if not len(corpus):
        dropped = "only empty or unreadable ones" if len(corpus.dropped) else "none"
        raise nothing(corpus.place, dropped)
    if id is not None:
        _check_ids(corpus)
    return corpus


def _opened(where: Any, wanted: Wanted) -> Corpus:
    if where is None:
        return open_default(wanted)
    if isinstance(where, str | os.PathLike):
        return _open_path(Path(cast(str, where)).expanduser(), wanted)
    if isinstance(where, Sequence):
        return Memory(cast(Sequence[str], where), wanted)
    raise SourceError(
        f"expected a path or a list of texts as corpus, got {type(where).__name__}",
        hint="save arrays of token ids with np.save and give the path",
        slug="corpus-kind",
    )


def _open_path(path: Path, wanted: Wanted) -> Corpus:
    if str(path) in ("-", "/dev/stdin"):
        return _open_stream(_stdin(), "stdin", STDIN, wanted)
    with border(str(path)):
        if "\0" in str(path):
            raise FileNotFoundError  # Python itself raises ValueError here
        path.stat()
    if path.is_dir():
        return open_folder(path, wanted)
    if not path.is_file():  # a named pipe, as <(command) makes them
        with border(str(path)), path.open("rb") as stream:
            return _open_stream(stream, path.name, str(path), wanted)
    return open_file(path, wanted, file_id(path, None))


def _open_stream(stream: BinaryIO, name: str, place: str, wanted: Wanted) -> Corpus:
    """Text out of a pipe, of which a temporary copy is made; with a column, jsonl."""
    if wanted.kind not in (None, "text"):
        raise SourceError(
            f"expected text on {place}, got kind {wanted.kind!r}",
            hint="save it to a file and give its path",
            slug="corpus-kind",
        )
    held = spooled(stream, place)
    if wanted.columns:
        return open_jsonl(held, name, wanted)
    if wanted.per == "file":
        return open_spooled(held, name, wanted)
    return open_lines(held, name, wanted)


def _stdin() -> BinaryIO:
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        raise SourceError(
            f"expected text on {STDIN}, got a terminal",
            hint="pipe it in: cat text.txt | isoscope survey MODEL - -o RUN",
            slug="stdin-terminal",
        )
    return sys.stdin.buffer


def _check_ids(corpus: Corpus) -> None:
    """Refuse ids that come twice: documents are what intervals are made of."""
    keys = corpus.keys()
    order = np.argsort(keys, kind="stable")
    twice = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    if len(twice):
        first, second = (corpus.document(int(order[twice[0] + i])) for i in (0, 1))
        raise SourceError(
            f"expected an id for each document, got {shown(first.id)!r} "
            f"in {first.place} and again in {second.place}",
            hint="name a column without repeats, or none: documents are then numbered",
            slug="id-twice",
        )


def _per(problem: str) -> SourceError:
    return SourceError(
        problem,
        hint="columns are for jsonl, parquet, csv and tsv; line and file for plain text",
        slug="corpus-per",
    )

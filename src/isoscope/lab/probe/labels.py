"""Labels of documents: a column of the corpus, a file with one a line, a list, or by id."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isoscope.errors import ColumnError, ConfigError, SourceError
from isoscope.registry import unknown
from isoscope.source.border import border
from isoscope.source.corpus import open_corpus
from isoscope.source.corpus.corpus import Corpus

APART = ".txt"  # how the name of a file of labels ends; anything else is a column
LARGEST = 64 << 20  # bytes of a file of labels
Labels = Sequence[Any] | Mapping[str, Any] | os.PathLike[str] | str


def labelled(corpus: Any, labels: Labels, **reading: Any) -> tuple[Corpus, list[Any]]:
    """Return an open corpus and the label of each document of it.

    A string is the name of a column, or of a file that ends in .txt and has a label a line;
    anything else is labels: one a document, or by the ids of documents.
    """
    column = labels if isinstance(labels, str) and not labels.endswith(APART) else None
    opened = corpus if isinstance(corpus, Corpus) else _opened(corpus, column, reading)
    if column is not None:
        return opened, _of_column(opened)
    if isinstance(labels, str | os.PathLike):
        return opened, labels_for(opened, _of_file(Path(labels).expanduser()))
    return opened, labels_for(opened, labels)


def labels_for(corpus: Corpus, labels: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
    """Return the label of each document; every one has to have its own."""
    count = len(corpus)
    if isinstance(labels, Mapping):
        ids = [corpus.id(ordinal) for ordinal in range(count)]
        missing = [each for each in ids if each not in labels]
        if missing:
            raise _mismatch(count, f"none for {missing[0]!r}")
        return [labels[each] for each in ids]
    if len(labels) != count:
        raise _mismatch(count, f"{len(labels)}")
    return list(labels)


def against_rest(labels: Sequence[Any], positive: str) -> list[str]:
    """Return one label against all others, as two."""
    names = [str(each) for each in labels]
    if positive not in names:
        raise unknown("label", positive, sorted(set(names)))
    return [each if each == positive else f"not {positive}" for each in names]


def _opened(corpus: Any, column: str | None, reading: Mapping[str, Any]) -> Corpus:
    try:
        return open_corpus(corpus, label=column, **reading)
    except ColumnError as error:
        if column is None or reading.get("column"):
            raise
        raise ColumnError(
            error.problem,
            hint="a corpus without columns takes its labels from a file ending in .txt, "
            "a label a line",
            slug="no-columns",
        ) from error


def _of_column(corpus: Corpus) -> list[str]:
    found: list[str] = []
    for document in corpus:
        if document.label is None:
            raise _mismatch(len(corpus), f"none for {document.id!r}")
        found.append(document.label)
    return found


def _of_file(path: Path) -> list[str]:
    place = str(path)
    with border(place):
        if path.stat().st_size > LARGEST:
            raise SourceError(
                f"expected {LARGEST} bytes at most in {place}, got {path.stat().st_size}",
                hint="a file of labels has one label a line",
                slug="document-too-large",
            )
        content = path.read_bytes()
    try:
        lines = [line.strip() for line in content.decode("utf-8-sig").splitlines()]
    except UnicodeDecodeError as error:
        raise SourceError(
            f"expected UTF-8 text in {place}, got other bytes at {error.start}",
            hint="convert it, as with iconv -f latin1 -t utf-8",
            slug="not-utf8",
        ) from error
    if "" in lines:
        raise _mismatch(len(lines), f"an empty line {lines.index('') + 1} in {place}")
    return lines


def _mismatch(documents: int, got: str) -> ConfigError:
    return ConfigError(
        f"expected a label for each of {documents} documents, got {got}",
        hint="give one label a document, in the order of the documents, or by their ids",
        slug="labels-mismatch",
    )

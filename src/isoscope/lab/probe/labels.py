"""Labels of documents: a column of the corpus, a file with one per line, a list, or by id."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from isoscope.errors import ColumnError, ConfigError
from isoscope.lab.probe.one_dimension import Label
from isoscope.registry import check_names
from isoscope.source.corpus import open_corpus
from isoscope.source.corpus.corpus import Corpus
from isoscope.source.corpus.texts import read_text

APART = ".txt"  # how the name of a file of labels ends; anything else is a column
Labels = Sequence[Label] | Mapping[str, Label] | os.PathLike[str] | str


def open_labelled(
    corpus: Corpus | str | os.PathLike[str] | Sequence[str] | None,
    labels: Labels,
    *,
    column: str | None = None,
    id: str | None = None,
    skip_bad: bool = False,
) -> tuple[Corpus, list[Label]]:
    """Return an open corpus and the label of each document of it.

    A string is the name of a column, or of a file that ends in .txt and has one label per
    line; anything else is labels: one per document, or by the ids of documents.
    """
    named = labels if isinstance(labels, str) and not labels.endswith(APART) else None
    try:
        opened = (
            corpus
            if isinstance(corpus, Corpus)
            else open_corpus(corpus, label=named, column=column, id=id, skip_bad=skip_bad)
        )
    except ColumnError as error:
        if named is None or column:
            raise
        raise ColumnError(
            error.problem,
            hint="a corpus without columns takes its labels from a file ending in .txt, "
            "one label per line",
            slug="no-columns",
        ) from error
    if named is not None:
        return opened, _column_labels(opened)
    if isinstance(labels, str | os.PathLike):
        return opened, labels_for(opened, _file_labels(Path(labels).expanduser()))
    return opened, labels_for(opened, labels)


def labels_for(corpus: Corpus, labels: Sequence[Label] | Mapping[str, Label]) -> list[Label]:
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


def against_rest(labels: Sequence[Label], positive: str) -> list[Label]:
    """Return one label against all others, as two."""
    names = [str(each) for each in labels]
    check_names("label", [positive], sorted(set(names)))
    return [each if each == positive else f"not {positive}" for each in names]


def _column_labels(corpus: Corpus) -> list[Label]:
    found: list[Label] = []
    for document in corpus:
        if document.label is None:
            raise _mismatch(len(corpus), f"none for {document.id!r}")
        found.append(document.label)
    return found


def _file_labels(path: Path) -> list[str]:
    lines = [line.strip() for line in read_text(path).splitlines()]
    if "" in lines:
        raise _mismatch(len(lines), f"an empty line {lines.index('') + 1} in {path}")
    return lines


def _mismatch(documents: int, got: str) -> ConfigError:
    return ConfigError(
        f"expected a label for each of {documents} documents, got {got}",
        hint="give one label per document, in the order of the documents, or by their ids",
        slug="labels-mismatch",
    )

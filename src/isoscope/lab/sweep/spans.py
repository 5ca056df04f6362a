"""Questions whose answers stand in a text: SQuAD-style json, or rows with answers."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from isoscope.errors import SourceError
from isoscope.lab.sweep.preset import Columns
from isoscope.lab.sweep.task import Example, Span
from isoscope.source.border import border
from isoscope.source.corpus import open_corpus
from isoscope.source.corpus.corpus import Dropped

Answers = list[tuple[str, int | None]]  # text and where it starts, if that is said
Row = tuple[str, str, str | None, Answers]  # place, text, question, answers
UNREADABLE = "rows that are no text with answers"
LARGEST = 512 << 20  # bytes of a json file, which is read whole


def span_examples(
    path: Path, columns: Columns, *, skip_bad: bool = False
) -> tuple[list[Example], list[str]]:
    """Return examples with spans, and how many questions had no answer in their text.

    With `skip_bad`, rows that are no text with answers are left out and counted too.
    """
    dropped = Dropped() if skip_bad else None
    suffix = path.suffix.lower()
    if suffix == ".json":
        rows = _squad(path)
    elif suffix in (".jsonl", ".ndjson"):
        rows = _lines(path, columns, dropped)
    elif suffix in (".parquet", ".pq"):
        rows = _table(path, columns, dropped)
    else:
        rows = _cells(path, columns, dropped)
    found: list[Example] = []
    lost = 0
    for place, context, question, answers in rows:
        span = _span(context, answers)
        if span is None:
            lost += 1
        else:
            found.append(Example(context, question, span, place))
    if not found:
        raise SourceError(
            f"expected questions with answers in {path}, got none of {lost}",
            hint="an answer has to stand in its text, word for word",
            slug="task-labels",
        )
    remark = f"questions without an answer in their text left out of {path.name}: {lost}"
    return found, [*([remark] if lost else []), *(dropped.lines() if dropped else [])]


def _span(context: str, answers: Answers) -> Span | None:
    """Return the first answer that stands in the text, where the file says or where it is."""
    right = tuple(dict.fromkeys(text for text, _ in answers if text.strip()))
    for text, start in answers:
        if not text.strip():
            continue
        at = start
        if at is None or at < 0 or not context.startswith(text, at):
            whole = re.search(rf"(?<!\w){re.escape(text)}(?!\w)", context)
            at = context.find(text) if whole is None else whole.start()
        if at >= 0:
            return Span(at, at + len(text), right)
    return None


def _squad(path: Path) -> Iterator[Row]:
    content = _json(path)
    try:
        for article in content["data"]:
            for paragraph in article["paragraphs"]:
                for entry in paragraph["qas"]:
                    answers: Answers = [
                        (str(a["text"]), int(a["answer_start"])) for a in entry["answers"]
                    ]
                    place = f"{path}, question {str(entry.get('id', ''))[:40]!r}"
                    yield place, str(paragraph["context"]), str(entry["question"]), answers
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SourceError(
            f"expected a file in the layout of SQuAD at {path}, got other objects ({error!r})",
            hint="data holds paragraphs, these a context and qas with question and answers; "
            "rows of your own go into a jsonl file",
            slug="task-file",
        ) from error


def _json(path: Path) -> Any:
    import msgspec

    with border(str(path), "a json file"):
        size = path.stat().st_size
        if size > LARGEST:
            raise SourceError(
                f"expected at most {LARGEST >> 20} MiB in {path}, got {size >> 20}",
                hint="json is read whole; write its rows to a jsonl file",
                slug="task-file",
            )
        return msgspec.json.decode(path.read_bytes())


def _lines(path: Path, columns: Columns, dropped: Dropped | None) -> Iterator[Row]:
    import msgspec

    with border(str(path), "a jsonl file"), path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            place = f"{path}, line {number}"
            try:
                row = msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                if dropped is None:
                    raise
                dropped.add(UNREADABLE, place)
            else:
                yield from _kept(row, columns, place, dropped)


def _table(path: Path, columns: Columns, dropped: Dropped | None) -> Iterator[Row]:
    import pyarrow.parquet as pq

    with border(str(path), "a parquet file"), pq.ParquetFile(path) as file:
        number = 0
        for batch in file.iter_batches(batch_size=256):
            for row in batch.to_pylist():
                yield from _kept(row, columns, f"{path}, row {number}", dropped)
                number += 1


def _kept(row: Any, columns: Columns, place: str, dropped: Dropped | None) -> Iterator[Row]:
    """Yield a row, or count it among those left out where that is asked for."""
    try:
        yield _row(row, columns, place)
    except SourceError:
        if dropped is None:
            raise
        dropped.add(UNREADABLE, place)


def _row(row: Any, columns: Columns, place: str) -> Row:
    """Return a row: answers are a text, texts, or texts with their starts as in datasets."""
    if not isinstance(row, Mapping):
        raise _wrong(place, "no object")
    cells = cast(Mapping[str, Any], row)
    for name in (columns.text, columns.target, *([columns.pair] if columns.pair else [])):
        if name not in cells:
            raise _wrong(place, f"no column {name!r}")
    text, question = cells[columns.text], cells[columns.pair] if columns.pair else None
    if not isinstance(text, str) or not isinstance(question, str | None):
        raise _wrong(place, "no text")
    return place, text, question, _answers(cells[columns.target], place)


def _answers(value: Any, place: str) -> Answers:
    starts: list[Any] = []
    if isinstance(value, Mapping):
        given = cast(Mapping[str, Any], value)
        value, starts = given.get("text", []), list(given.get("answer_start") or [])
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
        raise _wrong(place, "answers that are no texts")
    whole = all(isinstance(each, int) for each in starts) and len(starts) == len(texts)
    return list(zip(texts, starts if whole else [None] * len(texts), strict=True))


def _cells(path: Path, columns: Columns, dropped: Dropped | None) -> Iterator[Row]:
    corpus = open_corpus(
        path,
        column=columns.text,
        target=columns.pair,
        label=columns.target,
        skip_bad=dropped is not None,
    )
    if dropped is not None:
        dropped.merge(corpus.dropped)
    for each in corpus:
        answers: Answers = [(each.label, None)] if each.label else []
        yield each.place, each.content, each.target, answers


def _wrong(place: str, got: str) -> SourceError:
    return SourceError(
        f"expected a text and its answers in {place}, got {got}",
        hint="name the columns with --column, --pair and --answer; --skip-bad (in Python "
        "skip_bad=True) drops and counts such rows",
        slug="task-labels",
    )

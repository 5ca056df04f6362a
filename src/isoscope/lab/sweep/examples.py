"""Files of examples: tsv, csv, jsonl, parquet or SQuAD json; known tasks and their columns."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec

from isoscope.dataclass import dataclass
from isoscope.errors import ConfigError, SourceError, UnknownColumnError
from isoscope.lab.sweep.spec import SweepSpec
from isoscope.lab.sweep.task import METRICS, Example, Kind, Span, SweepTask, score_of
from isoscope.registry import Registry
from isoscope.source.corpus import Document, open_corpus
from isoscope.source.corpus.corpus import Dropped
from isoscope.source.corpus.text_tables import read_objects
from isoscope.source.file_errors import border

SKIP = "--skip-bad drops and counts such rows"
FORMATS = (".tsv", ".csv", ".jsonl", ".ndjson", ".parquet", ".pq", ".json", ".gz")
UNREADABLE = "rows that are not a text with answers"
LARGEST = 512 << 20  # bytes of a json file, which is read whole
Answers = list[tuple[str, int | None]]  # text, and where it starts if the file says so
Row = tuple[str, str, str | None, Answers]  # place, text, question, answers
Found = tuple[list[Example], list[str]]  # examples, and what was dropped


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of columns, or their numbers from 0 in a file without a header."""

    text: str
    target: str
    pair: str | None = None


@dataclass(frozen=True, slots=True)
class Preset:
    """A known task: its kind, its metric, and the columns its files are known to have."""

    kind: Kind
    metric: str
    columns: tuple[Columns, ...]  # to try in this order
    bins: int = 0  # number of labels made of scores from 0 to 1, of equal width


def _pair(first: str, second: str, *targets: str) -> tuple[Columns, ...]:
    return tuple(Columns(first, target, second) for target in targets)


_SENTENCE = (Columns("sentence", "label"), Columns("text", "label"), Columns("0", "1"))
_SENTENCES = _pair("sentence1", "sentence2", "label")
PRESETS: Registry[Preset] = Registry("task")
for _name, _preset in {
    "sst2": Preset("label", "accuracy", _SENTENCE),
    "sst5": Preset("label", "accuracy", _SENTENCE, bins=5),
    "cola": Preset("label", "matthews", (Columns("sentence", "label"), Columns("3", "1"))),
    "mrpc": Preset(
        "label", "accuracy", (*_pair("#1 String", "#2 String", "Quality"), *_SENTENCES)
    ),
    "rte": Preset("label", "accuracy", _SENTENCES),
    "qnli": Preset("label", "accuracy", _pair("question", "sentence", "label")),
    "qqp": Preset(
        "label", "accuracy", _pair("question1", "question2", "is_duplicate", "label")
    ),
    "stsb": Preset(
        "score",
        "spearman",
        (*_pair("sentence1", "sentence2", "score", "label"), *_pair("0", "1", "2")),
    ),
    "squad": Preset("span", "span-f1", (Columns("context", "answers", "question"),)),
}.items():
    PRESETS.add(_name, _preset)


def read_task(spec: SweepSpec) -> SweepTask:
    """Return the task of a sweep from its file of examples, and from one of held-out ones.

    With `skip_bad`, rows that cannot be read or have no target are dropped and counted.
    """
    name, preset = choose_preset(spec)
    learnt, remarks = read_examples(Path(spec.data), preset, skip_bad=spec.skip_bad)
    tried = None
    if spec.test is not None:
        tried, more = read_examples(Path(spec.test), preset, skip_bad=spec.skip_bad)
        remarks += more
    return SweepTask.of(
        name,
        preset.kind,
        preset.metric,
        learnt,
        tried,
        hold_out=spec.hold_out,
        seed=spec.seed,
        remarks=remarks,
    )


def choose_preset(spec: SweepSpec) -> tuple[str, Preset]:
    """Return the name of a task and how its file is read: a known one, or columns as named."""
    options = {"label": spec.label, "score": spec.score, "answer": spec.answer}
    named = {name: column for name, column in options.items() if column is not None}
    path = Path(spec.data)
    task = spec.task
    if task is None and not named and path.suffix.lower() == ".json":
        task = "squad"
    if task is not None:
        known = PRESETS[task]
        if named or spec.column or spec.pair:
            raise _column_error(f"cannot read the task {task!r} with columns named as well")
        return task, _with_metric(known, spec.metric)
    if len(named) != 1:
        got = " and ".join(f"--{name}" for name in named) or "none of them"
        raise _column_error(f"expected one of --task, --label, --score and --answer, got {got}")
    ((option, target),) = named.items()
    columns = Columns(spec.column or "text", target, spec.pair)
    plain = {
        "label": Preset("label", "accuracy", (columns,)),
        "score": Preset("score", "spearman", (columns,)),
        "answer": Preset("span", "span-f1", (columns,)),
    }[option]
    return path.stem, _with_metric(plain, spec.metric)


def read_examples(path: Path, preset: Preset, *, skip_bad: bool = False) -> Found:
    """Return the examples of a file, and what was dropped."""
    path = path.expanduser()
    if path.is_dir():
        raise SourceError(
            f"expected a file of examples, got the folder {str(path)!r}",
            hint="name the training file, and the held-out one with --test",
            slug="task-file",
        )
    if path.suffix.lower() not in FORMATS and path.exists():
        raise SourceError(
            f"expected tsv, csv, jsonl, parquet or SQuAD json, got {path.name!r}",
            hint="give the file one of these suffixes, or convert it",
            slug="task-file",
        )
    if preset.kind == "span":
        return read_spans(path, preset.columns[0], skip_bad=skip_bad)
    errors: list[UnknownColumnError] = []
    for columns in preset.columns:
        try:
            return _labelled_examples(path, columns, preset, skip_bad)
        except UnknownColumnError as error:
            errors.append(error)
    raise errors[0]


def _labelled_examples(path: Path, columns: Columns, preset: Preset, skip_bad: bool) -> Found:
    corpus = open_corpus(
        path,
        column=columns.text,
        target=columns.pair,
        label=columns.target,
        skip_bad=skip_bad,
    )
    found: list[Example] = []
    dropped = Dropped()
    for each in corpus:
        fault = _fault(each, columns)
        if fault is not None and not skip_bad:
            raise fault
        if fault is not None:
            dropped.add("rows without a label or a second text", each.place)
        elif skip_bad and preset.kind == "score" and score_of(each.label) is None:
            dropped.add("rows whose score is not a number", each.place)
        elif each.label is not None:
            found.append(Example(each.content, each.target, each.label, each.place))
    # Whole numbers throughout are labels already.
    if preset.bins and any("." in str(each.target) for each in found):
        found = [replace(each, target=_bin(str(each.target), preset.bins)) for each in found]
    return found, [*corpus.warnings, *dropped.lines()]


def _fault(row: Document, columns: Columns) -> SourceError | None:
    """Return what a row lacks as an example, if anything."""
    if row.label is None:
        return SourceError(
            f"expected a label in column {columns.target!r} of {row.place}, got none",
            hint=f"test files without labels cannot be used; {SKIP}",
            slug="task-labels",
        )
    if columns.pair is not None and row.target is None:
        return SourceError(
            f"expected a second text in column {columns.pair!r} of {row.place}, got none",
            hint=f"every example of pairs needs both; {SKIP}",
            slug="task-labels",
        )
    return None


def _bin(label: str, bins: int) -> str:
    """Return the bin of a score from 0 to 1; any other label as it is."""
    score = score_of(label)
    if score is None or not 0 <= score <= 1:
        return label
    # The upper end belongs to a bin, as in the released code: 0.2 is very negative.
    return str(next(number for number in range(bins) if score <= (number + 1) / bins + 1e-9))


def _with_metric(preset: Preset, name: str | None) -> Preset:
    """Return a preset with the metric that is named, which has to fit the kind of task."""
    name = name or preset.metric
    if METRICS[name].kind != preset.kind:
        fit = [each.name for each in METRICS.values() if each.kind == preset.kind]
        raise ConfigError(
            f"cannot judge a task of {preset.kind}s with {name!r}",
            hint=f"take one of: {', '.join(fit)}",
            slug="task-metric",
        )
    return replace(preset, metric=name)


def _column_error(problem: str) -> ConfigError:
    return ConfigError(
        problem,
        hint="a known task needs no columns (--task sst2); others need --column and one of "
        "--label, --score or --answer",
        slug="task-columns",
    )


def read_spans(path: Path, columns: Columns, *, skip_bad: bool = False) -> Found:
    """Return questions with spans, and how many had no answer in their text.

    With `skip_bad`, rows that are not a text with answers are dropped and counted too.
    """
    dropped = Dropped() if skip_bad else None
    suffix = path.suffix.lower()
    if suffix == ".json":
        rows = _squad_rows(path)
    elif suffix in (".jsonl", ".ndjson", ".parquet", ".pq"):
        rows = _object_rows(path, columns, dropped)
    else:
        rows = _corpus_rows(path, columns, dropped)
    spans = [
        (_find_span(context, answers), context, question, place)
        for place, context, question, answers in rows
    ]
    found = [
        Example(context, question, span, place)
        for span, context, question, place in spans
        if span
    ]
    lost = len(spans) - len(found)
    if not found:
        raise SourceError(
            f"expected questions with answers in {path}, got none of {lost}",
            hint="an answer has to stand in its text, word for word",
            slug="task-labels",
        )
    remark = f"questions without an answer in their text skipped in {path.name}: {lost}"
    return found, [*([remark] if lost else []), *(dropped.lines() if dropped else [])]


def _find_span(context: str, answers: Answers) -> Span | None:
    """Return the first answer that stands in the text, where the file says or where it is."""
    right = tuple(dict.fromkeys(text for text, _ in answers if text.strip()))
    for text, start in answers:
        at = start
        if at is None or at < 0 or not context.startswith(text, at):
            whole = re.search(rf"(?<!\w){re.escape(text)}(?!\w)", context)
            at = context.find(text) if whole is None else whole.start()
        if at >= 0 and text.strip():
            return Span(at, at + len(text), right)
    return None


class SquadAnswer(msgspec.Struct):
    """An answer as SQuAD writes it."""

    text: str
    answer_start: int


class SquadQuestion(msgspec.Struct):
    """A question, and its answers in the text."""

    question: str
    answers: list[SquadAnswer]
    id: str | int = ""


class SquadParagraph(msgspec.Struct):
    """A text, and the questions about it."""

    context: str
    qas: list[SquadQuestion]


class SquadArticle(msgspec.Struct):
    """Paragraphs of one article."""

    paragraphs: list[SquadParagraph]


class SquadFile(msgspec.Struct):
    """A file in the layout of SQuAD."""

    data: list[SquadArticle]


class AnswerLists(msgspec.Struct):
    """Answers as the datasets library writes them."""

    text: list[str] = []
    answer_start: list[object] | None = None


def _squad_rows(path: Path) -> Iterator[Row]:
    with border(str(path), "a json file"):
        size = path.stat().st_size
        if size > LARGEST:
            raise SourceError(
                f"expected at most {LARGEST >> 20} MiB in {path}, got {size >> 20}",
                hint="json is read whole; write its rows to a jsonl file",
                slug="task-file",
            )
        content: object = msgspec.json.decode(path.read_bytes())
    try:
        whole = msgspec.convert(content, SquadFile)
    except msgspec.ValidationError as error:
        raise SourceError(
            f"expected a file in the layout of SQuAD at {path}, got other objects ({error})",
            hint="data holds paragraphs, these a context and qas with question and answers; "
            "rows of your own go into a jsonl file",
            slug="task-file",
        ) from error
    for paragraph in (each for article in whole.data for each in article.paragraphs):
        for entry in paragraph.qas:
            place = f"{path}, question {str(entry.id)[:40]!r}"
            answers: Answers = [(each.text, each.answer_start) for each in entry.answers]
            yield place, paragraph.context, entry.question, answers


def _corpus_rows(path: Path, columns: Columns, dropped: Dropped | None) -> Iterator[Row]:
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


def _object_rows(path: Path, columns: Columns, dropped: Dropped | None) -> Iterator[Row]:
    """Yield rows; with `dropped`, those that are not a text with answers are counted instead.

    Answers are a text, several texts, or texts with their starts as in datasets.
    """
    names = [columns.text, columns.target, *([columns.pair] if columns.pair else [])]
    on_bad = None if dropped is None else partial(dropped.add, UNREADABLE)
    for place, row in read_objects(path, on_bad):
        try:
            cells = msgspec.convert(row, dict[str, object])
            text = msgspec.convert(cells[columns.text], str)
            pair = msgspec.convert(cells[columns.pair], str | None) if columns.pair else None
            value = msgspec.convert(cells[columns.target], str | list[str] | AnswerLists)
        except (msgspec.ValidationError, KeyError) as error:
            if on_bad is None:
                got = f"no column {error}" if isinstance(error, KeyError) else str(error)
                raise SourceError(
                    f"expected a text and its answers in {place}, got {got}",
                    hint=f"the columns are {', '.join(names)}: name others with --column, "
                    f"--pair and --answer; {SKIP}",
                    slug="task-labels",
                ) from error
            on_bad(place)
        else:
            yield place, text, pair, _answers(value)


def _answers(value: str | list[str] | AnswerLists) -> Answers:
    if not isinstance(value, AnswerLists):
        return [(text, None) for text in ([value] if isinstance(value, str) else value)]
    starts = value.answer_start or []
    known = [each for each in starts if isinstance(each, int)]
    if len(known) == len(starts) == len(value.text):
        return list(zip(value.text, known, strict=True))
    return [(text, None) for text in value.text]

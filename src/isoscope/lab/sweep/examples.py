"""Files of examples: tsv, csv, jsonl or parquet, a column each for texts and targets."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from isoscope.errors import ConfigError, SourceError, UnknownColumnError
from isoscope.lab.sweep.metric import METRICS
from isoscope.lab.sweep.preset import PRESETS, Columns
from isoscope.lab.sweep.spans import span_examples
from isoscope.lab.sweep.task import Example, Kind, Task, score_of
from isoscope.source.corpus import Document, open_corpus
from isoscope.source.corpus.corpus import Dropped

SKIP = "--skip-bad (in Python skip_bad=True) drops and counts such rows"
FORMATS = (".tsv", ".csv", ".jsonl", ".ndjson", ".parquet", ".pq", ".json", ".gz")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the caller says of the files: a known task, or columns."""

    task: str | None = None
    text: str | None = None
    pair: str | None = None
    label: str | None = None
    score: str | None = None
    answer: str | None = None
    metric: str | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """How examples are read: the kind of their targets, and the columns to try in order."""

    name: str
    kind: Kind
    metric: str
    columns: tuple[Columns, ...]
    bins: int = 0


def task_of(
    train: str | os.PathLike[str],
    test: str | os.PathLike[str] | None,
    asked: Asked,
    *,
    hold_out: float = 0.2,
    seed: int = 0,
    skip_bad: bool = False,
) -> Task:
    """Return a task from a file of examples, and from one of held-out examples.

    With `skip_bad`, rows that cannot be read or have no target are left out and counted.
    """
    path = Path(train).expanduser()
    layout = layout_for(asked, path)
    learnt, remarks = examples_of(path, layout, skip_bad=skip_bad)
    tried: Sequence[Example] | None = None
    if test is not None:
        tried, more = examples_of(Path(test).expanduser(), layout, skip_bad=skip_bad)
        remarks = [*remarks, *more]
    return Task.of(
        layout.name,
        layout.kind,
        layout.metric,
        learnt,
        tried,
        hold_out=hold_out,
        seed=seed,
        remarks=remarks,
    )


def layout_for(asked: Asked, path: Path) -> Layout:
    """Return how a file is read: as its known task says, or by the columns named."""
    named = [n for n in ("label", "score", "answer") if getattr(asked, n) is not None]
    if asked.task is not None:
        known = PRESETS[asked.task]
        if named or asked.text or asked.pair:
            raise _columns(f"cannot read the task {asked.task!r} with columns named as well")
        metric = _metric(asked.metric or known.metric, known.kind)
        return Layout(asked.task, known.kind, metric, known.layouts, known.bins)
    if not named and path.suffix.lower() == ".json":
        return layout_for(replace(asked, task="squad"), path)
    if len(named) != 1:
        got = " and ".join(f"--{name}" for name in named) or "none of them"
        raise _columns(f"expected one of --task, --label, --score and --answer, got {got}")
    kinds: dict[str, tuple[Kind, str]] = {
        "label": ("label", "accuracy"),
        "score": ("score", "spearman"),
        "answer": ("span", "span-f1"),
    }
    kind, metric = kinds[named[0]]
    target = str(getattr(asked, named[0]))
    columns = Columns(asked.text or "text", target, asked.pair)
    return Layout(path.stem, kind, _metric(asked.metric or metric, kind), (columns,))


def examples_of(
    path: Path, layout: Layout, *, skip_bad: bool = False
) -> tuple[list[Example], list[str]]:
    """Return the examples of a file, and what was left out of it."""
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
    if layout.kind == "span":
        return span_examples(path, layout.columns[0], skip_bad=skip_bad)
    first: UnknownColumnError | None = None
    for columns in layout.columns:
        try:
            return _rows(path, columns, layout, skip_bad)
        except UnknownColumnError as error:
            first = first or error
    assert first is not None
    raise first


def _rows(
    path: Path, columns: Columns, layout: Layout, skip_bad: bool
) -> tuple[list[Example], list[str]]:
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
        elif skip_bad and layout.kind == "score" and score_of(each.label) is None:
            dropped.add("rows whose score is no number", each.place)
        else:
            found.append(Example(each.content, each.target, each.label, each.place))
    return _binned(found, layout.bins), [*corpus.warnings, *dropped.lines()]


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


def _binned(examples: list[Example], bins: int) -> list[Example]:
    """Return scores from 0 to 1 as bins; whole numbers throughout are labels already."""
    if not bins or not any("." in each.target for each in examples):
        return examples
    return [replace(each, target=_bin(each.target, bins)) for each in examples]


def _bin(label: str, bins: int) -> str:
    score = score_of(label)
    if score is None or not 0 <= score <= 1:
        return label
    # The upper end belongs to a bin, as in the released code: 0.2 is very negative.
    return str(next(number for number in range(bins) if score <= (number + 1) / bins + 1e-9))


def _metric(name: str, kind: Kind) -> str:
    fit = [each.name for each in METRICS.values() if each.kind == kind]
    if METRICS[name].kind != kind:
        raise ConfigError(
            f"cannot judge a task of {kind}s with {name!r}",
            hint=f"take one of: {', '.join(fit)}",
            slug="task-metric",
        )
    return name


def _columns(problem: str) -> ConfigError:
    return ConfigError(
        problem,
        hint="a known task needs no columns (--task sst2); others need --column and one of "
        "--label, --score or --answer",
        slug="task-columns",
    )


def described(task: Task) -> dict[str, Any]:
    """Return what a task is, in plain values."""
    return {
        "name": task.name,
        "kind": task.kind,
        "metric": task.metric,
        "classes": list(task.classes),
        "train": [len(task.train), task.fingerprint(task.train)],
        "test": [len(task.test), task.fingerprint(task.test)],
    }

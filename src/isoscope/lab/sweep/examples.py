"""Files of examples: tsv, csv, jsonl or parquet, a column each for texts and targets."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

from isoscope.errors import ConfigError, IsoscopeError, SourceError
from isoscope.lab.sweep.metric import METRICS
from isoscope.lab.sweep.preset import PRESETS, Columns
from isoscope.lab.sweep.spans import span_examples
from isoscope.lab.sweep.task import Example, Kind, Task
from isoscope.source.corpus import open_corpus

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
) -> Task:
    """Return a task from a file of examples, and from one of held-out examples."""
    path = Path(train).expanduser()
    layout = layout_for(asked, path)
    learnt, remarks = examples_of(path, layout)
    tried: Sequence[Example] | None = None
    if test is not None:
        tried, more = examples_of(Path(test).expanduser(), layout)
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


def examples_of(path: Path, layout: Layout) -> tuple[list[Example], list[str]]:
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
        return span_examples(path, layout.columns[0])
    first: IsoscopeError | None = None
    for columns in layout.columns:
        try:
            return _rows(path, columns, layout)
        except IsoscopeError as error:
            if error.slug != "unknown-column":
                raise
            first = first or error
    assert first is not None
    raise first


def _rows(path: Path, columns: Columns, layout: Layout) -> tuple[list[Example], list[str]]:
    corpus = open_corpus(path, column=columns.text, target=columns.pair, label=columns.target)
    found: list[Example] = []
    for each in corpus:
        if each.label is None:
            raise SourceError(
                f"expected a label in column {columns.target!r} of {each.place}, got none",
                hint="every example needs one; test files without labels cannot be used",
                slug="task-labels",
            )
        if columns.pair is not None and each.target is None:
            raise SourceError(
                f"expected a second text in column {columns.pair!r} of {each.place}, got none",
                hint="every example of pairs needs both",
                slug="task-labels",
            )
        target = _binned(each.label, layout.bins) if layout.bins else each.label
        found.append(Example(each.content, each.target, target, each.place))
    return found, list(corpus.warnings)


def _binned(label: str, bins: int) -> str:
    """Return the bin of a score from 0 to 1; a whole number is a label already."""
    try:
        score = float(label)
    except ValueError:
        return label
    if label.strip().isdigit() or not isfinite(score) or not 0 <= score <= 1:
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

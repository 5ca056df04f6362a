"""Metrics of a series: a csv with a column of steps, or what the HF Trainer logs."""

import csv
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path

from isoscope.capture.model.folder import read_json
from isoscope.errors import ConfigError, IsoscopeError, SourceError
from isoscope.store.series import MetricCurve

STEPS = ("step", "steps", "global_step", "Step")
HISTORY = "log_history"
IGNORED = {*STEPS, "epoch", "tokens"}  # how far training is, and no metric of it


def read_metrics(path: str, steps: Sequence[int]) -> list[MetricCurve]:
    """Return the curves of a file of metrics at the steps of the checkpoints.

    A csv has to have all of them. The HF Trainer logs each metric at steps of its own: what it
    logged at some checkpoints counts there.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise SourceError(
            f"no such file of metrics: {path!r}",
            hint="name a csv with a column step, or trainer_state.json",
            slug="file-missing",
        )
    logged = file.suffix == ".json"
    rows = _of_trainer(file) if logged else _of_csv(file)
    names = dict.fromkeys(name for _, row in rows for name in row)
    found = [_curve(name, rows, steps) for name in names]
    for each in found:
        missing = [step for step in steps if step not in each.steps]
        if missing and not logged:
            raise _unusable(
                file,
                f"{each.name} is missing at {len(missing)} of {len(steps)} checkpoints, the "
                f"first of them step {missing[0]}",
            )
    kept = [each for each in found if len(each.steps) > 1]
    if not kept:
        raise _unusable(file, "expected numbers at the steps of the checkpoints, got none")
    return kept


def _curve(
    name: str, rows: Sequence[tuple[int, Mapping[str, float]]], steps: Sequence[int]
) -> MetricCurve:
    values = {step: row[name] for step, row in rows if name in row}
    there = [step for step in steps if step in values]
    return MetricCurve(
        name=name, steps=tuple(there), values=tuple(values[step] for step in there)
    )


def _of_csv(file: Path) -> list[tuple[int, dict[str, float]]]:
    """Return the rows of a csv: a step, and numbers by column."""
    try:
        with file.open(newline="", encoding="utf-8-sig") as text:
            reader = csv.DictReader(text, strict=True)
            fields = list(reader.fieldnames or ())
            records = list(reader)
    except (OSError, UnicodeError, csv.Error) as error:
        raise _unusable(file, f"cannot read it: {error}") from error
    column = next((name for name in STEPS if name in fields), None)
    if column is None:
        raise _unusable(file, f"expected a column step, got {', '.join(fields[:6]) or 'none'}")
    found: list[tuple[int, dict[str, float]]] = []
    seen: dict[int, int] = {}
    for line, record in enumerate(records, 2):
        step = _step(file, line, record[column])
        if step in seen:
            raise _unusable(
                file, f"line {line}: step {step} stands there twice, first in line {seen[step]}"
            )
        seen[step] = line
        values = {
            name: number
            for name, text in record.items()
            if name not in IGNORED and (number := _number(text)) is not None
        }
        found.append((step, values))
    return found


def _of_trainer(file: Path) -> list[tuple[int, dict[str, float]]]:
    """Return what the HF Trainer logged: one entry per step and kind of log."""
    try:
        state = read_json(file)
    except IsoscopeError as error:
        raise _unusable(file, error.problem.rpartition(", got ")[2]) from error
    history = state.get(HISTORY) if isinstance(state, dict) else None
    if not isinstance(history, list):
        raise _unusable(file, f"expected {HISTORY}, as trainer_state.json has it, got none")
    merged: dict[int, dict[str, float]] = {}
    for entry in history:
        if not isinstance(entry, dict) or not isinstance(entry.get("step"), int):
            continue
        values = {
            str(name): float(value)
            for name, value in entry.items()
            if name not in IGNORED
            and isinstance(value, int | float)
            and not isinstance(value, bool)
            and isfinite(value)
        }
        merged.setdefault(entry["step"], {}).update(values)
    return sorted(merged.items())


def _step(file: Path, line: int, text: str | None) -> int:
    number = _number(text)
    if number is None or number < 0 or not float(number).is_integer():
        got = "none" if not (text or "").strip() else repr(text)
        raise _unusable(file, f"line {line}: expected a step, got {got}")
    return int(number)


def _number(text: object) -> float | None:
    """Return a finite number; None for what is empty or no number."""
    if not isinstance(text, str):
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


def _unusable(file: Path, problem: str) -> ConfigError:
    return ConfigError(
        f"cannot use the metrics in {file.name}: {problem}",
        hint="one line per step: a column step with whole numbers, each once, and one column "
        "per metric",
        slug="series-metrics",
    )

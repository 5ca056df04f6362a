"""isoscope sweep: weights as they are typed, every format, one error for bad input."""

import json

import pytest

from isoscope import api

QUICK = ("--steps", 2, "--seeds", 2, "--probe", 16, "--length", 32, "--threads", 1, "-q")


def test_weights_may_begin_with_a_minus(isoscope, examples):
    done = isoscope(
        "sweep", "models/minilm", "sst2.tsv", "--task", "sst2", "--weights", "-3,2.5", "--json",
        *QUICK,
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["weight"] for line in lines] == [-3.0, 0.0, 2.5]
    assert {line["task"] for line in lines} == {"sst2"}
    assert done.stderr == ""


def test_every_format_is_what_python_gives(isoscope, examples):
    words = ("sweep", "models/minilm", "sst2.tsv", "--task", "sst2", "--weights", "1")
    found = api.sweep(
        "models/minilm", "sst2.tsv", task="sst2", weights=[1.0], steps=2, seeds=2, probe=16,
        length=32, threads=1,
    )  # fmt: skip
    for name in ("csv", "latex", "markdown"):  # the last two are shown as they were saved
        done = isoscope(*words, *QUICK, f"--{name}", "-o", "runs/formats")
        assert done.exit_code == 0, done.stderr
        assert done.stdout == getattr(found, f"to_{name}")()


def test_a_run_is_saved_and_read(isoscope, examples):
    words = ("reviews.jsonl", "--label", "stars", "--penalty", "cosreg", "--layers", "0,1")
    done = isoscope("sweep", "models/minilm", *words, "--weights", 1, *QUICK, "-o", "runs/s")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("model ")
    tables = [line for line in done.stdout.splitlines() if not line[:1].isdigit()]
    assert max(map(len, tables)) <= 80
    read = isoscope("read", "runs/s", "--json")
    groups = {json.loads(line)["group"] for line in read.stdout.splitlines()}
    assert groups == {"", *(f"weight={w},seed={s}" for w in (0, 1) for s in (0, 1))}
    loud = [word for word in QUICK if word != "-q"]
    again = isoscope("sweep", "models/minilm", *words, "--weights", 1, *loud, "-o", "runs/s")
    assert again.exit_code == 0
    assert again.stdout == done.stdout
    assert "runs/s is finished: shown as it was saved" in again.stderr
    assert "saved runs/s" not in again.stderr
    other = isoscope("sweep", "models/minilm", *words, "--weights", 2, *QUICK, "-o", "runs/s")
    assert other.exit_code == 2 and "store-exists" in other.stderr


def test_bad_rows_are_skipped_with_a_remark_on_request(isoscope, examples):
    rows = (examples / "reviews.jsonl").read_text().splitlines()
    gap = '{"text": "a text without stars"}'
    (examples / "gap.jsonl").write_text("\n".join([*rows, gap, "not json"]))
    words = ("gap.jsonl", "--label", "stars", "--skip-bad", "--weights", 1, "-o", "runs/s")
    done = isoscope("sweep", "models/minilm", *words, *QUICK)
    assert done.exit_code == 0, done.stderr
    assert "rows without a label or a second text skipped: 1" in done.stdout
    assert "documents that cannot be read skipped: 1" in done.stdout
    assert "skip-bad: true" in (examples / "runs/s/config.yaml").read_text()


def test_the_config_of_a_run_does_it_again(isoscope, examples):
    words = ("reviews.jsonl", "--label", "stars", "--rows", 0, "--weights", "0.1234567")
    done = isoscope("sweep", "models/minilm", *words, *QUICK, "-o", "runs/s")
    assert done.exit_code == 0, done.stderr
    config = ("--config", "runs/s/config.yaml")
    again = isoscope("sweep", "models/minilm", "reviews.jsonl", *config, "-q", "-o", "runs/t")
    assert again.exit_code == 0, again.stderr
    assert again.stdout == done.stdout
    one, other = (json.loads((examples / f"runs/{n}/run.json").read_text()) for n in "st")
    assert one["origin"]["settings"] == other["origin"]["settings"]
    assert one["origin"]["settings"]["penalty"]["rows"] is None


@pytest.mark.parametrize(
    ("line", "problem", "slug"),
    [
        ("reviews.jsonl", "expected one of --task, --label", "task-columns"),
        ("reviews.jsonl --label star", "no column is called 'star'", "unknown-column"),
        ("gap.jsonl --label stars", "expected a label in column 'stars'", "task-labels"),
        ("reviews.jsonl --score text", "expected a number as score", "task-scores"),
        ("one.jsonl --label stars", "a class needs at least 2 examples", "task-class"),
        ("same.jsonl --label stars", "needs at least 2 classes, got 1", "task-class"),
        ("reviews.jsonl --label stars --weights nan", "finite number", "penalty-weight"),
        ("reviews.jsonl --label stars --weights a", "numbers as weights", "option-kind"),
        ("reviews.jsonl --label stars --layers x", "numbers of layers", "penalty-layers"),
        ("reviews.jsonl --label stars --towards x", "no shrinkage", "unknown-shrinkage"),
        ("reviews.jsonl --label stars --metric exact", "cannot judge", "task-metric"),
        ("none.tsv --task sst2", "got nothing of that name", "file-missing"),
        ("corpus.txt --label stars", "expected tsv, csv, jsonl", "task-file"),
        ("reviews.jsonl --task sst3", "no task is called 'sst3'", "unknown-task"),
    ],
)
def test_bad_input_is_one_line_and_a_hint(isoscope, examples, line, problem, slug):
    rows = (examples / "reviews.jsonl").read_text().splitlines()
    same = [row for row in rows if json.loads(row)["stars"] == 1]
    (examples / "same.jsonl").write_text("\n".join(same))
    one = json.dumps({"text": "the river", "stars": 3})
    (examples / "one.jsonl").write_text("\n".join([*rows, one]))
    rows[7] = '{"text": "a text without stars"}'
    (examples / "gap.jsonl").write_text("\n".join(rows))
    done = isoscope("sweep", "models/minilm", *line.split())
    assert done.exit_code == 2 and done.stdout == ""
    said = done.stderr.splitlines()
    assert len(said) == 3 and problem in said[0], done.stderr
    assert said[1].startswith("  hint: ") and said[2].endswith(f" {slug}")

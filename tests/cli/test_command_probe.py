"""isoscope probe: a line a site, one error for labels that do not match."""

import json

import pytest

from isoscope import api


def test_the_table_has_accuracy_and_baseline(isoscope, examples):
    done = isoscope("probe", "models/minilm", "reviews.jsonl", "--label", "stars")
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].endswith("chosen on 20 documents, accuracy on 20 others")
    assert lines[2].split()[:4] == ["site", "token", "dimension", "accuracy"]
    assert lines[3].startswith("norm.out  first")


@pytest.mark.parametrize("flag", ["--csv", "--latex", "--markdown", "--json"])
def test_every_format_is_what_python_gives(isoscope, examples, flag):
    flags = ("--label", "labels.txt", "-s", "resid.0", "-s", "resid.2", "--at", "mean")
    done = isoscope("probe", "models/minilm", "corpus.txt", *flags, flag)
    assert done.exit_code == 0, done.stderr
    found = api.probe(
        "models/minilm", "corpus.txt", "labels.txt", sites=["resid.0", "resid.2"], at="mean"
    )
    assert done.stdout == getattr(found, f"to_{flag[2:]}")()


def test_a_stream_has_its_labels_with_it(isoscope, examples):
    words = ("models/minilm", "-", "--label", "stars", "--column", "text", "--json", "-q")
    done = isoscope("probe", *words, input=(examples / "reviews.jsonl").read_text())
    assert done.exit_code == 0, done.stderr
    assert done.stderr == ""
    told = json.loads(done.stdout)
    assert (told["n_train"], told["n_test"]) == (20, 20)
    assert {told["above"], told["below"]} == {"1", "5"}


@pytest.mark.parametrize(
    ("line", "problem", "slug"),
    [
        ("corpus.txt --label short.txt", "of 40 documents, got 39", "labels-mismatch"),
        ("gap.jsonl --label stars", "got none for 'gap.jsonl:7'", "labels-mismatch"),
        ("gap.jsonl --label text", "expected two different labels", "labels-binary"),
        ("few.jsonl --label stars", "at least 8 rows of each label", "labels-few"),
        ("reviews.jsonl --label star", "no column is called 'star'", "unknown-column"),
        ("corpus.txt --label stars", "cannot take a column from corpus.txt", "no-columns"),
        ("reviews.jsonl --label stars --positive 3", "no label is called '3'", "unknown-label"),
        ("reviews.jsonl --label stars -s resid.9", "no site is called", "unknown-site"),
        (
            "reviews.jsonl --label stars --at end",
            "no place of a state",
            "unknown-place-of-a-state",
        ),
        ("reviews.jsonl --label stars --test 1", "less than 1 as test", "number-range"),
        ("reviews.jsonl", "issing option '--label'", "usage"),
    ],
)
def test_bad_input_is_one_line_and_a_hint(typed, examples, line, problem, slug):
    rows = (examples / "reviews.jsonl").read_text().splitlines()
    (examples / "short.txt").write_text("1\n" * 39)
    (examples / "few.jsonl").write_text("\n".join(rows[:9]))
    rows[7] = '{"text": "a text without stars"}'
    (examples / "gap.jsonl").write_text("\n".join(rows))
    done = typed(f"isoscope probe models/minilm {line}")
    assert done.returncode == 2 and done.stdout == ""
    said = done.stderr.splitlines()
    assert len(said) == 3 and problem in said[0], done.stderr
    assert said[1].startswith("  hint: ") and said[2].endswith(f" {slug}")

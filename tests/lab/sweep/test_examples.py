"""Files of examples: every layout of every known task, and columns of one's own."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from isoscope.errors import ConfigError, IsoscopeError, SourceError, UnknownNameError
from isoscope.lab.sweep.examples import choose_preset, read_examples, read_task
from isoscope.lab.sweep.spec import SweepSpec


def spec(path, **options):
    return SweepSpec.of(model="m", data=str(path), **options)


def read(path, **options):
    return read_examples(path, choose_preset(spec(path, **options))[1])[0]


LAYOUTS = [
    ("sst2", "sentence\tlabel\na good film\t1\n", "a good film", None, "1"),
    ("sst2", "one long string of cliches\t0\n", "one long string of cliches", None, "0"),
    ("sst5", "sentence\tlabel\na good film\t0.55\n", "a good film", None, "2"),
    ("sst5", "text\tlabel\na good film\t4\n", "a good film", None, "4"),
    ("cola", "gj04\t1\t\tThe dog barked.\n", "The dog barked.", None, "1"),
    ("cola", "sentence\tlabel\tidx\nThe dog barked.\t0\t7\n", "The dog barked.", None, "0"),
    (
        "mrpc",
        '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t2\t3\tHe said "so.\tSo.\n',
        'He said "so.',
        "So.",
        "1",
    ),
    (
        "rte",
        "index\tsentence1\tsentence2\tlabel\n0\tA.\tB.\tnot_entailment\n",
        "A.",
        "B.",
        "not_entailment",
    ),
    ("qnli", "index\tquestion\tsentence\tlabel\n0\tWho?\tI.\tentailment\n", "Who?", "I.", None),
    (
        "qqp",
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n0\t1\t2\tA?\tB?\t0\n",
        "A?",
        "B?",
        "0",
    ),
    (
        "stsb",
        "index\tgenre\tsentence1\tsentence2\tscore\n0\tnews\tA.\tB.\t4.75\n",
        "A.",
        "B.",
        "4.75",
    ),
]


@pytest.mark.parametrize(("task", "content", "text", "pair", "target"), LAYOUTS)
def test_known_tasks_are_read_in_their_layouts(tmp_path, task, content, text, pair, target):
    path = tmp_path / "file.tsv"
    path.write_text(content)
    (found,) = read(path, task=task)
    assert (found.text, found.pair) == (text, pair)
    assert target is None or found.target == target


def test_stsb_without_a_header_is_read_by_number(tmp_path):
    path = tmp_path / "stsb.csv"
    path.write_text('"A man, dancing.",A man.,5.0\nA dog.,A cat.,1.5\n')
    found = read(path, task="stsb")
    assert [(e.text, e.pair, e.target) for e in found] == [
        ("A man, dancing.", "A man.", "5.0"),
        ("A dog.", "A cat.", "1.5"),
    ]


def test_scores_of_sst5_fall_into_bins_with_their_upper_end(tmp_path):
    path = tmp_path / "sst.tsv"
    scores = ["0.0", "0.2", "0.21", "0.4", "0.5", "0.8", "0.81", "1.0"]
    path.write_text("sentence\tlabel\n" + "".join(f"t {s}\t{s}\n" for s in scores))
    assert [e.target for e in read(path, task="sst5")] == list("00112344")


@pytest.mark.parametrize(
    ("labels", "classes"),
    [(["0.95", "1", "0", "0.3"], "4401"), (["0", "1", "4", "2"], "0142")],
)
@pytest.mark.parametrize("suffix", ["tsv", "jsonl"])
def test_whole_numbers_of_sst5_are_what_the_others_of_the_file_are(
    tmp_path, suffix, labels, classes
):
    path = tmp_path / f"sst.{suffix}"
    if suffix == "tsv":
        path.write_text("sentence\tlabel\n" + "".join(f"t\t{each}\n" for each in labels))
    else:
        path.write_text("".join(f'{{"sentence": "t", "label": {e}}}\n' for e in labels))
    assert [e.target for e in read(path, task="sst5")] == list(classes)


def test_bad_rows_are_skipped_and_counted_on_request(tmp_path):
    good = [{"text": f"t {i}", "b": "y", "label": i % 2, "score": i / 2} for i in range(20)]
    bad = [{**good[0], **change} for change in (
        {"label": None}, {"b": ""}, {"label": ["a"]}, {"text": 5}, {"score": "high"},
    )]  # fmt: skip
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in [*good, *bad]) + "not json\n")
    with pytest.raises(IsoscopeError):
        read_task(spec(path, label="label", pair="b"))
    labels = read_task(spec(path, test=str(path), label="label", pair="b", skip_bad=True))
    assert len(labels.train) == len(labels.test) == 21
    assert [text.split(" skipped: ")[1][:2] for text in labels.remarks] == ["3 ", "2 "] * 2
    scores = read_task(spec(path, test=str(path), score="score", skip_bad=True))
    assert len(scores.train) == 23
    assert any("whose score is not a number skipped: 1" in text for text in scores.remarks)


@pytest.mark.parametrize("suffix", ["tsv", "csv", "jsonl", "parquet"])
def test_every_format_gives_the_same_examples(tmp_path, rows, suffix):
    path = tmp_path / f"rows.{suffix}"
    kept = [{k: row[k] for k in ("text", "other", "stars")} for row in rows]
    if suffix == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in kept))
    elif suffix == "parquet":
        pq.write_table(pa.Table.from_pylist(kept), path)
    else:
        apart = "\t" if suffix == "tsv" else ","
        lines = [apart.join(kept[0]), *(apart.join(row.values()) for row in kept)]
        path.write_text("\n".join(lines) + "\n")
    found = read(path, column="text", pair="other", label="stars")
    assert [(e.text, e.pair, e.target) for e in found] == [tuple(r.values()) for r in kept]


def test_whole_numbers_and_truth_values_are_labels_too(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "a", "label": 1}\n{"text": "b", "label": true}\n')
    assert [e.target for e in read(path, label="label")] == ["1", "true"]


def test_a_task_holds_out_or_takes_a_file(reviews):
    whole = read_task(spec(reviews, test=str(reviews), label="stars"))
    parted = read_task(spec(reviews, label="stars", hold_out=0.25))
    assert len(whole.train) == len(whole.test) == 160
    assert (len(parted.train), len(parted.test)) == (120, 40)
    assert whole.name == "reviews" and whole.metric == "accuracy"
    told = whole.describe()
    assert told["classes"] == ["dry", "wet"] and told["train"] == told["test"]


@pytest.mark.parametrize(
    ("asked", "slug"),
    [
        ({}, "task-columns"),
        ({"label": "stars", "score": "score"}, "task-columns"),
        ({"task": "sst2", "label": "stars"}, "task-columns"),
        ({"task": "sst2", "column": "text"}, "task-columns"),
        ({"task": "sst"}, "unknown-task"),
        ({"label": "stars", "metric": "spearman"}, "task-metric"),
        ({"label": "stars", "metric": "accuracy2"}, "unknown-metric"),
        ({"label": "star"}, "unknown-column"),
        ({"task": "rte"}, "unknown-column"),
        ({"score": "stars"}, "task-scores"),
    ],
)
def test_what_was_requested_wrongly_is_reported(reviews, asked, slug):
    with pytest.raises(IsoscopeError) as caught:
        read_task(spec(reviews, **asked))
    assert caught.value.slug == slug


@pytest.mark.parametrize(
    ("name", "content", "slug"),
    [
        ("a.jsonl", '{"text": "x", "label": "1", "b": "y"}\n{"text": "x"}\n', "task-labels"),
        ("a.jsonl", '{"text": "x", "label": null, "b": "y"}\n', "task-labels"),
        ("a.jsonl", '{"text": "x", "label": ["a"], "b": "y"}\n', "document-unreadable"),
        ("a.jsonl", '{"text": "x", "label": "1", "b": ""}\n', "task-labels"),
        ("a.txt", "x\n", "task-file"),
        ("a.jsonl", "", "corpus-empty"),
    ],
)  # fmt: skip
def test_labels_that_are_missing_are_reported_with_their_place(tmp_path, name, content, slug):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(IsoscopeError) as caught:
        read(path, label="label", pair="b")
    assert caught.value.slug == slug


def test_a_folder_is_no_file_and_what_is_not_there_is_reported(tmp_path):
    with pytest.raises(SourceError, match="the folder"):
        read(tmp_path, task="sst2")
    with pytest.raises(SourceError) as caught:
        read(tmp_path / "none.tsv", task="sst2")
    assert caught.value.slug == "file-missing"


def test_json_is_taken_as_questions_and_answers(tmp_path):
    assert choose_preset(spec(tmp_path / "a.json"))[0] == "squad"
    with pytest.raises(ConfigError):
        choose_preset(spec(tmp_path / "a.jsonl"))
    with pytest.raises(UnknownNameError):
        choose_preset(spec(tmp_path / "a.json", task="nothing"))

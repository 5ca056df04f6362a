"""Questions and answers: SQuAD's own layout, rows of datasets, and cells."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from isoscope.errors import IsoscopeError
from isoscope.lab.sweep.examples import PRESETS, Columns, read_spans
from isoscope.lab.sweep.task import Span

COLUMNS = PRESETS["squad"].columns[0]
CONTEXT = "The bells rang, and the bells fell."
QUESTION = "What fell?"


def squad(answers):
    entry = {"id": "q1", "question": QUESTION, "answers": answers}
    return {"data": [{"paragraphs": [{"context": CONTEXT, "qas": [entry]}]}]}


def read(path, content, columns=COLUMNS):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_spans(path, columns)


def test_squad_says_where_an_answer_starts(tmp_path):
    at = CONTEXT.rindex("the bells")
    (found,), remarks = read(
        tmp_path / "a.json", squad([{"text": "the bells", "answer_start": at}])
    )
    assert found.target == Span(at, at + 9, ("the bells",))
    assert (found.text, found.pair) == (CONTEXT, QUESTION)
    assert remarks == []


def test_all_answers_count_as_right_and_a_wrong_start_is_looked_for(tmp_path):
    answers = [
        {"text": "bells fell", "answer_start": 0},
        {"text": "the bells fell", "answer_start": 1},
    ]
    (found,), _ = read(tmp_path / "a.json", squad(answers))
    assert found.target.answers == ("bells fell", "the bells fell")
    assert CONTEXT[found.target.start : found.target.end] == "bells fell"


@pytest.mark.parametrize("start", [-5, -11, 1000])
def test_a_start_outside_of_the_text_is_looked_for(tmp_path, start):
    # Counted from the end, both answers stand there.
    for text in ("bells", "fell"):
        (found,), _ = read(tmp_path / "a.json", squad([{"text": text, "answer_start": start}]))
        assert CONTEXT[found.target.start : found.target.end] == text
        assert found.target.start == CONTEXT.index(text)


@pytest.mark.parametrize("suffix", ["jsonl", "tsv"])
def test_bad_rows_are_skipped_and_counted_on_request(tmp_path, suffix):
    columns = Columns("context", "answers", "question")
    if suffix == "jsonl":
        good = {"context": CONTEXT, "question": QUESTION, "answers": ["bells"]}
        bad = ["not json", "[1]", json.dumps(good | {"answers": [5]}), '{"context": "\xff"}']
        content = "\n".join([json.dumps(good), *bad, "", json.dumps(good)])
        path = tmp_path / "a.jsonl"
        path.write_bytes(content.encode("latin1"))
    else:
        good = f"{CONTEXT}\t{QUESTION}\tbells"
        content = "\n".join(["context\tquestion\tanswers", good, "\xff\t\xff\tx", good])
        path = tmp_path / "a.tsv"
        path.write_bytes(content.encode("latin1"))
    with pytest.raises(IsoscopeError):
        read_spans(path, columns)
    found, remarks = read_spans(path, columns, skip_bad=True)
    assert [each.target.start for each in found] == [4, 4]
    assert len(remarks) == 1 and f"skipped: {4 if suffix == 'jsonl' else 1} " in remarks[0]


def test_questions_without_an_answer_are_counted(tmp_path):
    content = squad([{"text": "bells", "answer_start": 4}])
    more = content["data"][0]["paragraphs"][0]["qas"]
    more += [{"id": "2", "question": "Who?", "answers": [], "is_impossible": True}]
    found, remarks = read(tmp_path / "a.json", content)
    assert len(found) == 1
    assert remarks == ["questions without an answer in their text skipped in a.json: 1"]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_rows_of_datasets_are_read(tmp_path, suffix):
    row = {
        "context": CONTEXT,
        "question": QUESTION,
        "answers": {"text": ["the bells"], "answer_start": [20]},
    }
    path = tmp_path / f"a.{suffix}"
    if suffix == "jsonl":
        path.write_text(json.dumps(row) + "\n")
    else:
        pq.write_table(pa.Table.from_pylist([row]), path)
    (found,), _ = read_spans(path, COLUMNS)
    assert found.target == Span(20, 29, ("the bells",))


def test_cells_hold_an_answer_that_is_looked_for(tmp_path):
    columns = Columns("text", "answer", "question")
    (found,), _ = read(
        tmp_path / "a.tsv", f"text\tquestion\tanswer\n{CONTEXT}\t{QUESTION}\tbells\n", columns
    )
    assert found.target == Span(4, 9, ("bells",))


def test_an_answer_is_looked_for_as_a_word_first(tmp_path):
    row = json.dumps({"text": "it was a bell", "answer": "a"})
    (found,), _ = read(tmp_path / "a.jsonl", row, Columns("text", "answer"))
    assert found.target.start == 7


def test_a_question_is_not_needed(tmp_path):
    row = json.dumps({"text": CONTEXT, "answer": "fell"})
    (found,), _ = read(tmp_path / "a.jsonl", row, Columns("text", "answer"))
    assert found.pair is None


@pytest.mark.parametrize(
    ("name", "content", "slug"),
    [
        ("a.json", "{", "file-damaged"),
        ("a.json", {"rows": []}, "task-file"),
        ("a.json", [1, 2], "task-file"),
        ("a.json", squad([{"text": "nothing like it", "answer_start": 0}]), "task-labels"),
        ("a.jsonl", "[1]\n", "task-labels"),
        ("a.jsonl", "not json\n", "file-damaged"),
        ("a.jsonl", {"context": CONTEXT, "question": QUESTION}, "task-labels"),
        ("a.jsonl", {"context": 5, "question": QUESTION, "answers": "x"}, "task-labels"),
        ("a.jsonl", {"context": "x", "question": "y", "answers": [5]}, "task-labels"),
        ("a.parquet", "PAR1 and nothing", "file-damaged"),
    ],
)
def test_other_content_is_reported(tmp_path, name, content, slug):
    with pytest.raises(IsoscopeError) as caught:
        read(tmp_path / name, content)
    assert caught.value.slug == slug

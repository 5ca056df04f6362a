"""Encoding: what the tokenizer says, answers at their tokens, batches of like length."""

import json
from collections import Counter

import numpy as np
import pytest

from isoscope.errors import ConfigError
from isoscope.lab.sweep.encode import Encoder
from isoscope.lab.sweep.examples import read_task
from isoscope.lab.sweep.spec import SweepSpec
from isoscope.study.model import subject_of
from isoscope.training.train import epoch_batches


def encoded(model, path, length=32, **asked):
    task = read_task(SweepSpec.of(model="m", data=str(path), **asked))
    encoder = Encoder(subject_of(model), length)
    return task, encoder, encoder.encode(task, task.train)


def test_tokens_are_those_of_the_tokenizer(tiny, reviews):
    task, encoder, found = encoded(tiny, reviews, label="stars")
    for example, prepared in zip(task.train[:5], found.prepared, strict=False):
        assert (
            prepared.inputs["input_ids"].tolist()
            == encoder.tokenizer(example.text)["input_ids"]
        )
    assert found.targets.tolist() == task.numbers(task.train).tolist()


def test_pairs_stand_side_by_side(tiny, reviews):
    task, encoder, found = encoded(tiny, reviews, label="stars", pair="other")
    words = encoder.tokenizer.decode(found.prepared[0].inputs["input_ids"])
    assert words.count(task.train[0].text) == 1 and task.train[0].pair in words


def test_a_tokenizer_without_a_separator_gets_a_line_between(speaker, reviews):
    task, encoder, found = encoded(speaker, reviews, label="stars", pair="other")
    one = task.train[0]
    ids = encoder.tokenizer(f"{one.text}\n{one.pair}")["input_ids"]
    assert found.prepared[0].inputs["input_ids"].tolist() == ids


def test_long_texts_are_cut_and_counted(tiny, reviews):
    _, _, found = encoded(tiny, reviews, length=9, label="stars")
    assert max(each.length for each in found.prepared) == 9
    assert (
        sum(each.truncated for each in found.prepared)
        == sum(each.length == 9 for each in found.prepared)
        > 0
    )


def test_answers_are_at_their_tokens(tiny, reviews):
    task, _, found = encoded(tiny, reviews, answer="answer", pair="other")
    for example, offsets, (first, last) in zip(
        task.train, found.offsets, found.targets, strict=True
    ):
        words = example.text[offsets[first, 0] : offsets[last, 1]]
        assert words == example.target.answers[0]


def test_an_answer_that_was_cut_off_has_no_place(tiny, tmp_path):
    rows = [{"text": "the boats carry the people", "answer": w} for w in ("boats", "people")]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows * 4))
    task = read_task(SweepSpec.of(model="m", data=str(path), test=str(path), answer="answer"))
    found = Encoder(subject_of(tiny), 5).encode(task, task.train)
    assert found.targets[:2].tolist() == [[2, 2], [-1, -1]]


def test_batches_are_whole_of_like_length_and_of_the_seed_alone(tiny, reviews):
    _, _, found = encoded(tiny, reviews, label="stars")
    batches = epoch_batches(found.lengths, 16, 3, 0)
    assert [len(each) for each in batches] == [16] * 8
    assert len({place for each in batches for place in each}) == 128
    lengths = np.array([each.length for each in found.prepared])
    apart = [np.ptp(lengths[each]) for each in batches]
    assert np.mean(apart) < np.ptp(lengths) / 3
    assert epoch_batches(found.lengths, 16, 3, 0) == batches
    assert (
        epoch_batches(found.lengths, 16, 4, 0) != batches
        and epoch_batches(found.lengths, 16, 3, 1) != batches
    )
    assert [len(each) for each in epoch_batches(found.lengths, 1000, 0, 0)] == [128]


def test_the_longest_example_is_trained_on_like_any_other(tiny, reviews):
    _, _, found = encoded(tiny, reviews, label="stars")
    by_length = sorted(range(len(found)), key=lambda place: found.prepared[place].length)
    some = found.select([*by_length[:32], by_length[-1]])
    batches = [
        each for epoch in range(60) for each in epoch_batches(some.lengths, 16, 0, epoch)
    ]
    assert {len(each) for each in batches} == {16}
    times = Counter(place for each in batches for place in each)
    assert set(times) == set(range(33)) and min(times.values()) > 50


def test_some_examples_are_chosen_with_all_that_is_theirs(tiny, reviews):
    _, _, found = encoded(tiny, reviews, answer="answer")
    some = found.select([5, 2])
    assert len(some) == 2
    assert some.examples == [found.examples[5], found.examples[2]]
    assert some.targets.tolist() == found.targets[[5, 2]].tolist()
    assert some.offsets[1] is found.offsets[2]


def test_models_of_images_are_refused(normless):
    with pytest.raises(ConfigError) as caught:
        Encoder(subject_of(normless), 16)
    assert caught.value.slug == "sweep-model"

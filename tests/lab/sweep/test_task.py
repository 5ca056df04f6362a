"""A task: labels and scores are checked where they come in, and some examples held out."""

import pytest

from isoscope.errors import ConfigError, SourceError, TooFewRowsError
from isoscope.lab.sweep.task import Example, SweepTask


def examples(targets):
    return [Example(f"text {i}", None, t, f"file, line {i}") for i, t in enumerate(targets)]


def task(targets, test=None, kind="label", **given):
    tried = None if test is None else examples(test)
    return SweepTask.of("t", kind, "accuracy", examples(targets), tried, **given)


def test_labels_that_are_numbers_are_classes_in_their_order():
    found = task(["10", "9", "10", "9", "2", "2"], test=["2", "10"])
    assert found.classes == ("2", "9", "10")
    assert found.numbers(found.train).tolist() == [2, 1, 2, 1, 0, 0]


def test_words_come_in_their_own_order():
    assert task(["b", "a", "b", "a"], test=["a", "b"]).classes == ("a", "b")


def test_a_share_of_each_class_is_held_out_and_the_seed_decides_which():
    labels = ["a"] * 50 + ["b"] * 10
    found = task(labels, hold_out=0.2)
    assert [each.target for each in found.test].count("a") == 10
    assert [each.target for each in found.test].count("b") == 2
    assert not {e.text for e in found.train} & {e.text for e in found.test}
    assert len(found.train) + len(found.test) == 60
    assert task(labels, hold_out=0.2).test == found.test
    assert task(labels, hold_out=0.2, seed=1).test != found.test


def test_scores_become_numbers():
    found = task(["1", "2.5"] * 8, kind="score", test=["0", "5"] * 4)
    assert found.numbers(found.train).tolist() == [1.0, 2.5] * 8


@pytest.mark.parametrize(
    ("targets", "test", "kind", "error", "slug", "words"),
    [
        (["a", "a", "b"], ["a", "a"], "label", TooFewRowsError, "task-class", "1 of 'b'"),
        (["a", "a", "a"], ["a", "a"], "label", TooFewRowsError, "task-class", "2 classes"),
        (["a", "a", "b", "b"], ["a", "c"], "label", SourceError, "task-labels", "'c'"),
        (["a"] * 8, ["1", "2"] * 4, "score", SourceError, "task-scores", "'a'"),
        (["nan"] * 8, ["1", "2"] * 4, "score", SourceError, "task-scores", "'nan'"),
        (["1"] * 8, ["1", "2"] * 4, "score", TooFewRowsError, "task-scores", "8 with 1"),
        (["1", "2"], ["1", "2"], "score", TooFewRowsError, "task-scores", "2 with 2"),
        (["a", "a", "b", "b"], ["a"], "label", TooFewRowsError, "task-class", "4 and 1"),
    ],
)
def test_what_cannot_be_learnt_is_refused(targets, test, kind, error, slug, words):
    with pytest.raises(error, match=words) as caught:
        task(targets, test, kind)
    assert caught.value.slug == slug


def test_a_label_of_any_length_makes_a_short_message():
    with pytest.raises(TooFewRowsError) as caught:
        task(["x" * 100_000, "a", "a"], ["a", "a"])
    assert len(str(caught.value)) < 400


def test_scores_given_as_labels_are_distinguished_by_the_hint():
    with pytest.raises(TooFewRowsError) as caught:
        task(["1.25", "2.5", "3.75", "3.75"], ["3.75", "3.75"])
    assert "--score" in caught.value.hint


@pytest.mark.parametrize("share", [0.0, 1.0, -1.0, float("nan")])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(ConfigError, match="between 0 and 1"):
        task(["a", "b"] * 10, hold_out=share)


def test_the_fingerprint_follows_texts_and_targets():
    one, other = task(["a", "b"] * 5), task(["b", "a"] * 5)
    assert one.fingerprint(one.train) == one.fingerprint(one.train)
    assert one.fingerprint(one.train) != other.fingerprint(other.train)

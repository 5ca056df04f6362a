"""Grouping by key: every key as if it had an accumulator of its own."""

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock, Keyed, Moments, Norms, Tally, merged
from isoscope.errors import MergeError, RowError, TooFewRowsError

ROWS = np.random.default_rng(31).normal(size=(60, 3)) + 2
LABELS = np.array(["rare", "common", "common"] * 20)


def tallied(*parts):
    keyed = Keyed.of(Tally)(3)
    for block, labels in parts:
        keyed.update_by(block, labels)
    return keyed


def test_each_key_has_the_summary_of_its_rows(make_block):
    keyed = Keyed(3)
    keyed.update_by(make_block(ROWS, [6] * 10), LABELS)
    found = keyed.finalize()
    assert list(found) == ["common", "rare"] and keyed.count == 60
    for key, summary in found.items():
        here = ROWS[key == LABELS]
        np.testing.assert_allclose(summary.covariance, np.cov(here.T), rtol=1e-10)
        np.testing.assert_allclose(summary.mean, here.mean(axis=0), rtol=1e-12)


def test_documents_and_positions_go_with_their_rows(make_block):
    keyed = tallied((make_block(ROWS, [6] * 10), LABELS))
    assert {key: s.documents for key, s in keyed.finalize().items()} == {
        "common": 10,
        "rare": 10,
    }
    assert not keyed.finalize()["rare"].independent
    alone = tallied((make_block(ROWS), LABELS))
    assert alone.finalize()["rare"].independent
    assert alone.finalize()["rare"].documents == 20


def test_labels_may_be_numbers(make_block):
    keyed = tallied((make_block(ROWS), np.arange(60) % 2))
    assert list(keyed.finalize()) == ["0", "1"]


def test_rows_without_labels_share_one_key(make_block):
    keyed = Keyed(3)
    keyed.update(make_block(ROWS))
    assert list(keyed.finalize()) == [""]


def test_keys_that_only_one_part_has_are_kept(make_block):
    one = tallied((make_block(ROWS), np.repeat(["a", "b"], 30)))
    other = tallied((make_block(ROWS, first=60), np.repeat(["b", "c"], 30)))
    counts = {key: s.count for key, s in merged([one, other]).finalize().items()}
    assert counts == {"a": 30, "b": 60, "c": 30}


def test_keys_with_slashes_and_none_at_all_come_back(make_block):
    keyed = Keyed(3)
    keyed.update_by(make_block(ROWS), np.array(["a/b", "", "a", "/"] * 15))
    back = Keyed.from_state(keyed.state(), width=3)
    assert back.finalize().keys() == keyed.finalize().keys() == {"a/b", "", "a", "/"}
    assert back.count == 60
    for key, summary in keyed.finalize().items():
        np.testing.assert_allclose(back.finalize()[key].covariance, summary.covariance)


def test_a_key_with_too_few_rows_is_left_out(make_block):
    keyed = Keyed(3)
    keyed.update_by(make_block(ROWS), np.array(["one"] + ["many"] * 59))
    assert list(keyed.finalize()) == ["many"]


def test_no_rows_are_too_few():
    with pytest.raises(TooFewRowsError, match="keyed needs at least 1 usable rows, got 0"):
        Keyed(3).finalize()


def test_members_of_another_kind_do_not_merge():
    with pytest.raises(MergeError, match="cannot merge KeyedNorms"):
        Keyed.of(Norms)(3).merge(Keyed.of(Moments)(3))


def test_labelled_rows_of_another_width_are_refused():
    with pytest.raises(RowError, match="expected vectors of width 3, got width 4"):
        Keyed(3).update_by(ArrayBlock(np.ones((2, 4))), np.array(["a", "b"]))


def test_a_class_of_members_is_called_after_them():
    assert Keyed.of(Norms).__name__ == "KeyedNorms" and Keyed.of(Norms).kind is Norms

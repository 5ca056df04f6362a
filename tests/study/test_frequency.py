"""Counts of tokens: of documents, or from a table that must be of the same tokenizer."""

import json

import numpy as np
import pytest

from isoscope.accumulate.row_bands import frequency_bands
from isoscope.errors import ConfigError, SourceError
from isoscope.study.frequency import Frequencies, read_frequencies


class Words:
    """As much of a tokenizer as a table of tokens needs."""

    def get_vocab(self):
        return {"the": 0, "of": 1, "cat": 2, "sat": 3}


def test_tokens_of_both_stacks_are_counted():
    seen = Frequencies()
    seen.see({"input_ids": np.array([3, 3, 1]), "decoder_input_ids": np.array([5])})
    seen.see({"input_ids": np.array([1]), "input_features": np.ones((2, 2))})
    assert seen.counts.tolist() == [0, 2, 0, 2, 0, 1]
    assert seen.bands().tolist() == frequency_bands(np.array([0, 2, 0, 2, 0, 1])).tolist()


def test_what_has_no_tokens_has_no_bands():
    seen = Frequencies()
    seen.see({"input_features": np.ones((2, 2))})
    assert seen.bands() is None


def test_a_table_is_not_counted_upon(tmp_path):
    np.save(tmp_path / "counts.npy", np.array([900, 90, 9, 1]))
    table = read_frequencies(tmp_path / "counts.npy", Words(), 4)
    table.see({"input_ids": np.array([3, 3, 3])})
    assert table.counts.tolist() == [900, 90, 9, 1]
    assert table.bands().tolist() == [4, 4, 3, 3]


def test_a_table_may_name_its_tokens(tmp_path):
    (tmp_path / "counts.json").write_text(json.dumps({"the": 7, "sat": 2, "unheard": 1}))
    table = read_frequencies(tmp_path / "counts.json", Words(), 4)
    assert table.counts.tolist() == [7, 0, 0, 2]


def test_counts_that_differ_have_another_digest():
    one, two = Frequencies(np.array([1.0, 2.0])), Frequencies(np.array([2.0, 1.0]))
    assert one.digest != two.digest == Frequencies(np.array([2.0, 1.0])).digest


@pytest.mark.parametrize(
    ("counts", "problem"),
    [
        (np.ones(5), "expected counts of 4 tokens, got 5"),
        (np.ones((2, 2)), "something else"),
        (np.array([1.0, np.nan, 1, 1]), "something else"),
        (np.array([1.0, -1, 1, 1]), "something else"),
        (np.zeros(4), "something else"),
        (np.array(["a", "b", "c", "d"]), "something else"),
    ],
)
def test_arrays_that_are_no_counts_of_this_vocabulary_are_refused(tmp_path, counts, problem):
    np.save(tmp_path / "counts.npy", counts)
    with pytest.raises(ConfigError, match=problem) as caught:
        read_frequencies(tmp_path / "counts.npy", Words(), 4)
    assert caught.value.slug == "frequency-table"


def test_pickled_arrays_are_not_loaded(tmp_path):
    np.save(tmp_path / "counts.npy", np.array([{}, {}]), allow_pickle=True)
    with pytest.raises(ConfigError, match="something else"):
        read_frequencies(tmp_path / "counts.npy", Words(), 2)


@pytest.mark.parametrize(
    "text", ["[1, 2]", "{", '{"the": "many"}', '{"the": null}', "[" * 100_000]
)
def test_files_that_are_no_table_are_refused(tmp_path, text):
    (tmp_path / "counts.json").write_text(text)
    with pytest.raises(ConfigError, match="something else"):
        read_frequencies(tmp_path / "counts.json", Words(), 4)


def test_tokens_of_another_tokenizer_are_refused(tmp_path):
    (tmp_path / "counts.json").write_text(json.dumps({"the": 3, "Ġthe": 2, "Ġof": 1}))
    with pytest.raises(ConfigError, match="1 known of 3"):
        read_frequencies(tmp_path / "counts.json", Words(), 4)


def test_a_table_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SourceError, match=r"counts\.npy"):
        read_frequencies(tmp_path / "counts.npy", Words(), 4)

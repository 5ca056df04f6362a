"""The longest document is bounded by whoever allows least."""

import pytest

from isoscope.capture.feed.reader import length_limit
from isoscope.errors import ConfigError


def test_what_is_requested_is_bounded_by_the_model(zoo):
    loaded = zoo.text_model("bert", max_position_embeddings=40)
    assert length_limit(loaded, 30) == 30
    assert length_limit(loaded, 512) == 40


def test_what_is_requested_is_bounded_by_the_tokenizer(zoo):
    loaded = zoo.text_model("bert")
    loaded.tokenizer.model_max_length = 24
    assert length_limit(loaded, 512) == 24


def test_what_is_requested_is_bounded_by_the_pooling(zoo):
    body = zoo.built("bert", **zoo.SMALL)
    assert (
        length_limit(zoo.Loaded(body, body, pooling=zoo.Pooling(max_seq_length=20)), 512) == 20
    )
    assert length_limit(zoo.Loaded(body, body, pooling=zoo.Pooling()), 512) == 512


def test_roberta_counts_from_behind_its_padding_index(zoo):
    loaded = zoo.text_model("roberta", max_position_embeddings=34, pad_token_id=1)
    assert length_limit(loaded, 512) == 32


def test_models_without_positions_bound_nothing(zoo):
    assert length_limit(zoo.text_model("mamba", state_size=4), 5000) == 5000


def test_a_length_of_one_is_refused(zoo):
    with pytest.raises(ConfigError, match="expected a length of at least 2, got 1"):
        length_limit(zoo.text_model("bert"), 1)

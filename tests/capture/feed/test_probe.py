"""The model itself tells whether padding is harmless."""

import pytest
import torch

from isoscope.capture.feed.text import TextFeed, padding_is_harmless, trial_tokens


def batches(zoo, loaded):
    feed = TextFeed(loaded, length=64, prompt=None)
    one, two = (feed.of_tokens(str(n), trial_tokens(feed.reader, n)) for n in (4, 9))
    return feed.collate([one]), feed.collate([one, two])


@pytest.mark.parametrize(
    ("kind", "harmless"), [("bert", True), ("mamba", True), ("fnet", False)]
)
def test_masks_causality_and_mixing_are_distinguished(zoo, kind, harmless):
    loaded = zoo.text_model(kind)
    assert padding_is_harmless(loaded.body, *batches(zoo, loaded)) is harmless


def test_a_model_that_trains_keeps_training(zoo):
    loaded = zoo.text_model("bert")
    loaded.body.train()
    assert padding_is_harmless(loaded.body, *batches(zoo, loaded))
    assert loaded.body.training


def test_rounding_in_half_precision_is_not_taken_for_padding(zoo):
    loaded = zoo.text_model("bert")
    loaded.body.to(torch.bfloat16)
    assert padding_is_harmless(loaded.body, *batches(zoo, loaded))

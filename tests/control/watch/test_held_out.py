"""Probes: a fixed few texts, padded, shared out over processes."""

import pytest
import torch
from transformers import AutoTokenizer

from isoscope.control.watch.held_out import probe_batches
from isoscope.errors import ConfigError


@pytest.fixture
def tokenizer(tiny):
    return AutoTokenizer.from_pretrained(tiny)


def test_texts_are_padded_batches_up_to_a_budget(tokenizer, texts):
    batches = probe_batches(texts, tokenizer, length=16, tokens=150)
    masks = [batch["attention_mask"] for batch in batches]
    total = sum(int(mask.sum()) for mask in masks)
    assert 150 <= total < 150 + 16
    assert max(mask.shape[1] for mask in masks) <= 16
    first = tokenizer(texts[0], truncation=True, max_length=16)["input_ids"]
    assert batches[0]["input_ids"][0][: len(first)].tolist() == first


def test_processes_have_their_share_each(tokenizer, texts):
    whole = probe_batches(texts[:10], tokenizer, length=16, tokens=10_000)
    parts = [
        probe_batches(texts[:10], tokenizer, length=16, tokens=10_000, rank=r, size=3)
        for r in range(3)
    ]
    counts = [sum(int(b["attention_mask"].sum()) for b in part) for part in parts]
    assert sum(counts) == int(whole[0]["attention_mask"].sum())
    assert [len(part[0]["input_ids"]) for part in parts] == [4, 3, 3]


def test_batches_are_taken_as_they_are(tokenizer):
    batch = {"pixel_values": torch.zeros(2, 3)}
    assert probe_batches([batch], None, length=4, tokens=4) == [batch]


@pytest.mark.parametrize(
    ("probes", "known"),
    [(["a text"], False), ([5, 6], True), (["river", ""], True), ([""], True)],
)
def test_what_cannot_be_watched_is_told(tokenizer, probes, known):
    with pytest.raises(ConfigError) as caught:
        probe_batches(probes, tokenizer if known else None, length=8, tokens=64)
    assert caught.value.slug == "watch-probes"

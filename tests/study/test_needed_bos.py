"""A survey of a model that needs a bos which its files do not ask for."""

import json
import shutil

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

import isoscope as iso

WORDS = ("river", "house")
LENGTH = 30


@pytest.fixture
def needy(decoder, tmp_path):
    """Return a model that expects the words in turns, counted from a bos at position 0."""
    folder = tmp_path / "model"
    shutil.copytree(decoder, folder)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"bos_token": "[PAD]"}))
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    config = GPT2Config.from_pretrained(folder)
    config.tie_word_embeddings = False
    model = GPT2LMHeadModel(config)
    pattern = torch.tensor([1.0, -1.0]).repeat(config.n_embd // 2)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.fill_(1.0 if "ln_" in name and name.endswith("weight") else 0.0)
        model.transformer.wpe.weight[0::2], model.transformer.wpe.weight[1::2] = (
            pattern, -pattern,
        )  # fmt: skip
        for word, sign in zip(WORDS, (1, -1), strict=True):
            model.lm_head.weight[vocabulary[word]] = sign * 0.3 * pattern
    model.save_pretrained(folder)
    return folder


def test_a_survey_without_a_bos_that_a_model_needs_is_warned_of(needy):
    said = []
    texts = [" ".join(WORDS * (LENGTH // 2 + number % 2)) for number in range(20)]
    found = iso.survey(needy, texts, sites=["embed"], measures=["mean-cosine"], say=said.append)
    (wrong,) = [line for line in said if "special tokens look wrong" in line]
    assert wrong.startswith("warning: ") and "nats lower with [PAD]" in wrong
    assert wrong.removeprefix("warning: ") in found.remarks

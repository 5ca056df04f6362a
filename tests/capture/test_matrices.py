"""Embedding and unembedding are found, and whether they are one."""

import pytest
import torch
from families import FAMILIES
from torch import nn
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForSeq2SeqLM

from isoscope.capture.sites import are_tied, token_matrices


@pytest.mark.parametrize("tie", [True, False])
def test_a_causal_model_has_both_and_says_if_they_are_one(tie):
    family = FAMILIES["llama"]
    config = family.config()
    config.tie_word_embeddings = tie
    model = AutoModelForCausalLM.from_config(config)
    found = token_matrices(model)
    assert {site: tuple(w.shape) for site, w in found.items()} == {
        "embed.weight": (99, 32),
        "unembed.weight": (99, 32),
    }
    assert torch.equal(found["embed.weight"], model.model.embed_tokens.weight)
    assert torch.equal(found["unembed.weight"], model.lm_head.weight)
    assert are_tied(model) is tie
    assert not any(w.requires_grad for w in found.values())


def test_a_masked_model_has_both():
    model = FAMILIES["bert"].built(auto=AutoModelForMaskedLM)
    assert list(token_matrices(model)) == ["embed.weight", "unembed.weight"]
    assert are_tied(model)


def test_a_shared_embedding_of_two_halves_is_named_once():
    model = FAMILIES["t5"].built(auto=AutoModelForSeq2SeqLM)
    assert list(token_matrices(model)) == ["embed.weight", "unembed.weight"]


def test_embeddings_that_differ_are_named_by_their_side():
    model = FAMILIES["bart"].built(auto=AutoModelForSeq2SeqLM)
    decoder = model.model.decoder
    decoder.embed_tokens = nn.Embedding(99, 32)
    found = token_matrices(model)
    assert set(found) == {"enc.embed.weight", "dec.embed.weight", "unembed.weight"}
    assert torch.equal(found["dec.embed.weight"], decoder.embed_tokens.weight)


def test_the_sound_of_whisper_has_no_matrix_but_its_words_have():
    assert list(token_matrices(FAMILIES["whisper"].built())) == ["dec.embed.weight"]


@pytest.mark.parametrize("name", ["vit", "wav2vec2", "canine", "resnet"])
def test_patches_frames_and_hashes_have_no_matrix(name):
    model = FAMILIES[name].built()
    assert token_matrices(model) == {}
    assert not are_tied(model)


def test_any_module_may_be_requested():
    assert token_matrices(nn.Linear(2, 2)) == {}

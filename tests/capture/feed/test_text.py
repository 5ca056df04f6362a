"""Documents of text give the same states alone and in a padded batch, in every family."""

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from isoscope.capture.feed.text import CharacterFeed, TextFeed, trial_inputs, trial_tokens

GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_inner": 64, "vocab_size": 64}
HEADS = {"num_key_value_heads": 2, "head_dim": 8}
FAMILIES = {
    "bert": {},
    "roberta": {"pad_token_id": 1, "max_position_embeddings": 66},
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
    "albert": {"embedding_size": 16},
    "electra": {"embedding_size": 16},
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    "modernbert": {"global_attn_every_n_layers": 2, "local_attention": 8},
    "xlnet": {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64},
    "longformer": {"attention_window": 4, "max_position_embeddings": 66, "pad_token_id": 1},
    "gpt2": GPT2,
    "gptj": {**GPT2, "rotary_dim": 4},
    "gpt_neox": {},
    "llama": HEADS,
    "mistral": HEADS,
    "qwen3": HEADS,
    "gemma3_text": HEADS,
    "opt": {"ffn_dim": 64, "word_embed_proj_dim": 32},
    "falcon": {},
    "bloom": {"n_layer": 2, "n_head": 4},
    "mamba": {"state_size": 4},
    "rwkv": {"attention_hidden_size": 32},
}
LENGTHS = (3, 17, 9)


@pytest.mark.parametrize("kind", FAMILIES)
def test_company_changes_nothing(zoo, kind):
    loaded = zoo.text_model(kind, **FAMILIES[kind])
    feed = TextFeed(loaded, length=512, prompt=None)
    assert feed.mixes_lengths
    documents = [zoo.Document(f"d{n}", zoo.sentence(n, seed=n)) for n in LENGTHS]
    batch = zoo.same_alone_and_beside(feed, loaded, documents, {"": loaded.body})
    marks = batch.marks("", 19)
    assert batch.documents == ("d3", "d17", "d9")
    assert marks.real.sum(dim=1).tolist() == [n + 2 for n in LENGTHS]
    assert marks.special.sum(dim=1).tolist() == [2, 2, 2]
    assert marks.tokens.shape == (3, 19)


def test_a_model_that_lengthens_its_input_is_captured_with_its_padding(zoo):
    loaded = zoo.text_model("longformer", **FAMILIES["longformer"])
    feed = TextFeed(loaded, length=512, prompt=None)
    documents = [zoo.Document(f"d{n}", zoo.sentence(n, seed=n)) for n in LENGTHS]
    block = loaded.body.encoder.layer[0]
    batch = zoo.same_alone_and_beside(feed, loaded, documents, {"": block})
    assert zoo.heard(loaded, batch, block).shape[1] == 20


def test_a_tokenizer_without_padding_and_special_tokens_will_do(zoo):
    loaded = zoo.text_model("gpt2", zoo.reader(), **{**GPT2, "pad_token_id": None})
    feed = TextFeed(loaded, length=512, prompt=None)
    documents = [zoo.Document(f"d{n}", zoo.sentence(n)) for n in LENGTHS]
    batch = zoo.same_alone_and_beside(feed, loaded, documents, {"": loaded.body})
    assert "token_type_ids" not in batch.inputs
    assert batch.inputs["input_ids"][0, 3:].tolist() == [0] * 14
    assert not batch.marks("", 17).special.any()


def test_segments_are_given_to_models_that_have_them(zoo):
    document = zoo.Document("a", "the cat sat")
    for kind, has in (("bert", True), ("gpt2", False), ("distilbert", False)):
        loaded = zoo.text_model(kind, **FAMILIES[kind])
        feed = TextFeed(loaded, length=512, prompt=None)
        assert ("token_type_ids" in feed.batch([feed.prepare(document)]).inputs) is has


def test_a_model_that_mixes_positions_without_a_mask_gets_equal_lengths(zoo):
    loaded = zoo.text_model("fnet")
    feed = TextFeed(loaded, length=512, prompt=None)
    assert not feed.mixes_lengths
    equal = [feed.prepare(zoo.Document(f"d{s}", zoo.sentence(9, seed=s))) for s in range(2)]
    assert "attention_mask" not in feed.batch(equal).inputs
    with pytest.raises(ValueError, match="equal lengths only"):
        feed.batch([*equal, feed.prepare(zoo.Document("d", zoo.sentence(4)))])


def test_token_files_need_no_tokenizer(zoo):
    body = zoo.built("llama", **zoo.SMALL, **HEADS)
    loaded = zoo.Loaded(body, body)
    feed = TextFeed(loaded, length=12, prompt=None)
    documents = [zoo.Document(f"d{n}", np.arange(3, 3 + n)) for n in LENGTHS]
    batch = zoo.same_alone_and_beside(feed, loaded, documents, {"": body})
    assert batch.marks("", 12).real.sum(dim=1).tolist() == [3, 12, 9]
    assert [feed.prepare(each).truncated for each in documents] == [False, True, False]


@pytest.mark.parametrize(
    "content", ["", " ", np.array([5]), np.array([2, 2, 1]), np.array([], int)]
)
def test_too_short_or_all_special_is_nothing_to_measure(zoo, content):
    feed = TextFeed(zoo.text_model("bert"), length=512, prompt=None)
    assert feed.prepare(zoo.Document("a", content)) is None


def test_one_word_between_special_tokens_can_be_measured(zoo):
    document = zoo.Document("a", "cat")
    bert = TextFeed(zoo.text_model("bert"), length=512, prompt=None)
    assert bert.prepare(document).length == bert.prepare(document).cost == 3
    bare = TextFeed(zoo.text_model("gpt2", zoo.reader(), **GPT2), length=512, prompt=None)
    assert bare.prepare(document) is None


def test_positions_of_a_prompt_are_known(zoo):
    feed = TextFeed(zoo.text_model("bert"), length=512, prompt="the far ")
    assert feed.prompt_length == 3
    assert feed.prepare(zoo.Document("a", "cat")).length == 5


@pytest.mark.parametrize("stride", [16, 128])
def test_characters_and_molecules_count_whatever_the_company(zoo, stride):
    loaded = zoo.canine_model(stride)
    feed = CharacterFeed(loaded, length=512, prompt=None)
    texts = ["catty", "the cat sat on the mat, and the dog ran far", "a quick cat!", "ab d"]
    documents = [zoo.Document(str(n), text) for n, text in enumerate(texts)]
    batch = zoo.same_alone_and_beside(feed, loaded, documents, {"": loaded.body.encoder})
    characters = [len(text) + 2 for text in texts]
    assert batch.inputs["input_ids"].shape[1] % 4 == 0
    length = batch.inputs["input_ids"].shape[1]
    molecules = batch.marks("", length // 4)
    assert molecules.real.sum(dim=1).tolist() == [-(-n // 4) for n in characters]
    assert molecules.special.sum(dim=1).tolist() == [1] * 4
    assert batch.marks("", length).real.sum(dim=1).tolist() == characters
    ready = feed.prepare(documents[0])
    assert (ready.length, ready.cost) == (2, 8)


def test_one_molecule_is_nothing_to_measure(zoo):
    feed = CharacterFeed(zoo.canine_model(), length=512, prompt=None)
    assert feed.prepare(zoo.Document("a", "ab")) is None
    assert feed.prepare(zoo.Document("a", "")) is None
    assert feed.prepare(zoo.Document("a", "abc")).length == 2


def test_trial_tokens_are_ordinary(zoo):
    reader = TextFeed(zoo.text_model("bert"), length=512, prompt=None).reader
    ids = trial_tokens(reader, 12).ids
    assert len(set(ids.tolist())) == 12 and not np.isin(ids, reader.special).any()
    reader.vocabulary, reader.special = 3, np.arange(3)
    assert trial_tokens(reader, 4).ids.tolist() == [0, 1, 2, 0]


def test_trial_inputs_keep_within_the_positions_of_a_model(zoo):
    inputs = trial_inputs(zoo.text_model("bert", max_position_embeddings=6))
    assert inputs["input_ids"].shape == inputs["attention_mask"].shape == (1, 6)
    assert "attention_mask" not in trial_inputs(zoo.text_model("fnet"))


@pytest.mark.real
def test_minilm_reads_texts_the_same_alone_and_beside(zoo, minilm):
    body = AutoModel.from_pretrained(minilm).eval()
    tokenizer = AutoTokenizer.from_pretrained(minilm)
    loaded = zoo.Loaded(body, body, "text", tokenizer, None, zoo.Pooling(max_seq_length=256))
    feed = TextFeed(loaded, length=512, prompt=None)
    texts = [
        "A cat.",
        "Embeddings of unrelated texts score 0.8, and nobody says why.",
        "word " * 400,
    ]
    documents = [zoo.Document(str(n), text) for n, text in enumerate(texts)]
    batch = zoo.same_alone_and_beside(feed, loaded, documents, {"": body})
    assert batch.inputs["input_ids"].shape == (3, 256)
    assert batch.inputs["input_ids"][0, :5].tolist() == [101, 1037, 4937, 1012, 102]
    assert [feed.prepare(each).truncated for each in documents] == [False, False, True]
    assert torch.equal(batch.inputs["attention_mask"].bool(), batch.marks("", 256).real)

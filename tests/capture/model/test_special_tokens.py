"""Texts begin with bos and end with eos where the files of a model say so, and only there."""

import json

import gguf
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from isoscope.capture.model.special_tokens import SpecialTokens, read_special_tokens
from isoscope.capture.model.tokenizer import read_tokenizer

WORDS = ["<pad>", "<eos>", "<bos>", "<unk>", "<sep>", "a", "cat", "sat", "dog"]
CAT, DOG = WORDS.index("cat"), WORDS.index("dog")
EOS, BOS, SEP = 1, 2, 4


def folder_with(path, template=None, **settings):
    """Save a tokenizer of whole words, with settings in its tokenizer_config.json."""
    words = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    if template:
        around = [(token, WORDS.index(token)) for token in ("<bos>", "<eos>", "<sep>")]
        words.post_processor = processors.TemplateProcessing(
            single=template, special_tokens=around
        )
    roles = {"bos_token": "<bos>", "eos_token": "<eos>", "unk_token": "<unk>"}
    PreTrainedTokenizerFast(tokenizer_object=words, **roles).save_pretrained(path)
    config = json.loads((path / "tokenizer_config.json").read_text())
    (path / "tokenizer_config.json").write_text(json.dumps({**config, **settings}))
    return path


@pytest.mark.parametrize(
    ("template", "settings", "expected"),
    [
        (None, {}, [CAT, DOG]),
        (None, {"add_bos_token": True}, [BOS, CAT, DOG]),
        (None, {"add_eos_token": True}, [CAT, DOG, EOS]),
        (None, {"add_bos_token": True, "add_eos_token": True}, [BOS, CAT, DOG, EOS]),
        (None, {"add_bos_token": False}, [CAT, DOG]),
        ("<bos> $A", {}, [BOS, CAT, DOG]),
        ("<bos> $A", {"add_bos_token": True}, [BOS, CAT, DOG]),
        ("<bos> $A <eos>", {"add_bos_token": False}, [CAT, DOG, EOS]),
        ("<bos> $A <eos>", {"add_eos_token": False}, [BOS, CAT, DOG]),
        ("$A <sep>", {"add_bos_token": True}, [BOS, CAT, DOG, SEP]),
        ("$A <sep>", {"add_eos_token": True}, [CAT, DOG, SEP, EOS]),
        (None, {"add_bos_token": "yes"}, [CAT, DOG]),
    ],
)
def test_a_folder_says_what_stands_around_texts(tmp_path, said, template, settings, expected):
    folder = folder_with(tmp_path, template, **settings)
    tokenizer = read_tokenizer(folder, None, trust=False, say=said)
    found = tokenizer("cat dog", return_special_tokens_mask=True)
    assert found["input_ids"] == expected
    assert found["special_tokens_mask"] == [each not in (CAT, DOG) for each in expected]


def test_a_change_is_reported(tmp_path, said):
    folder = folder_with(tmp_path, "$A <eos>", add_bos_token=True, add_eos_token=False)
    read_tokenizer(folder, None, trust=False, say=said)
    assert said == [
        "texts begin with <bos>, as the model's files say",
        "texts do not end with <eos>, as the model's files say",
    ]


def test_nothing_is_reported_where_the_tokenizer_does_it_itself(tmp_path, said):
    folder = folder_with(tmp_path, "<bos> $A", add_bos_token=True, add_eos_token=False)
    read_tokenizer(folder, None, trust=False, say=said)
    assert said == []


def gguf_with(folder, *, model="gpt2", pre="default", **flags):
    """Write a GGUF file of byte-level tokens, without weights."""
    letters = [*(chr(number) for number in range(97, 123)), "yz"]
    writer = gguf.GGUFWriter(folder / "a.gguf", "llama")
    writer.add_vocab_size(4 + len(letters))
    writer.add_tokenizer_model(model)
    writer.add_tokenizer_pre(pre)
    writer.add_token_list([*WORDS[:4], *letters])
    writer.add_token_types([3] * 4 + [1] * len(letters))
    writer.add_token_merges(["y z"])
    writer.add_bos_token_id(BOS)
    writer.add_eos_token_id(EOS)
    for name, flag in flags.items():
        getattr(writer, f"add_{name}")(flag)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return folder


@pytest.mark.parametrize(
    ("flags", "before", "after"),
    [
        ({"add_bos_token": True}, [BOS], []),
        ({"add_bos_token": True, "add_eos_token": True}, [BOS], [EOS]),
        ({"add_bos_token": False}, [], []),
        ({}, [], []),
    ],
)
def test_a_gguf_file_says_what_stands_around_texts(tmp_path, said, flags, before, after):
    tokenizer = read_tokenizer(gguf_with(tmp_path, **flags), "a.gguf", trust=False, say=said)
    assert tokenizer("ab")["input_ids"] == [*before, 4, 5, *after]
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id) == (BOS, EOS)


@pytest.mark.parametrize(
    ("given", "bos"),
    [
        ({"model": "llama"}, True),
        ({"model": "llama", "add_bos_token": False}, False),
        ({"model": "gpt2", "pre": "llama-bpe"}, True),
        ({"model": "gpt2"}, None),
    ],
)
def test_a_gguf_file_that_does_not_say_is_read_as_llama_cpp_does(tmp_path, given, bos):
    folder = gguf_with(tmp_path, **given)
    assert read_special_tokens(folder, "a.gguf") == SpecialTokens(bos, None, BOS, EOS)


@pytest.mark.real
def test_minilm_has_its_own_tokens_and_no_others(minilm, said):
    tokenizer = read_tokenizer(minilm, None, trust=False, say=said)
    assert tokenizer("the cat")["input_ids"] == [101, 1996, 4937, 102]
    assert said == []


@pytest.mark.slow
@pytest.mark.real
def test_smollm_is_read_without_bos_as_its_file_says(smollm_opened, smollm_said):
    tokenizer = smollm_opened.loaded.tokenizer
    assert tokenizer.bos_token_id not in tokenizer("the cat")["input_ids"]
    assert smollm_said == []


@pytest.mark.real
@pytest.mark.slow
def test_gemma_is_read_with_bos_as_its_file_says(gemma3, said):
    tokenizer = read_tokenizer(gemma3.parent, gemma3.name, trust=False, say=said)
    assert tokenizer("the cat")["input_ids"] == [2, 1437, 5866]
    assert said == ["texts begin with <bos>, as the model's files say"]

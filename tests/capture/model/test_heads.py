"""A checkpoint is loaded as the class that uses most of its weights."""

import json

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from isoscope.capture.model.heads import candidates
from isoscope.capture.model.load import load
from isoscope.capture.sites import token_matrices
from isoscope.site import UNEMBED

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 32, "vocab_size": 60}  # fmt: skip
LLAMA = transformers.LlamaConfig(**SIZES, num_key_value_heads=2, tie_word_embeddings=False)
BERT = transformers.BertConfig(**SIZES)
GPT2 = transformers.GPT2Config(
    n_embd=16, n_layer=2, n_head=2, n_positions=32, vocab_size=60, tie_word_embeddings=True
)


def saved(folder, kind, config, *, architectures, extra=(), drop=()):
    """Save a model, say in its config that it is of another class, and change its weights."""
    torch.manual_seed(0)
    getattr(transformers, kind)(config).save_pretrained(folder)
    path = folder / "model.safetensors"
    weights = {n: t for n, t in load_file(path).items() if not n.startswith(tuple(drop) or "?")}
    more = {name: torch.ones(shape) for name, shape in dict(extra).items()}
    save_file({**weights, **more}, path, {"format": "pt"})
    settings = json.loads((folder / "config.json").read_text())
    settings["architectures"] = architectures
    (folder / "config.json").write_text(json.dumps(settings))
    return folder


@pytest.mark.parametrize("named", [["LlamaWithValueHead"], ["LlamaModel"], None])
def test_a_language_model_head_beside_another_head_is_kept(tmp_path, said, named):
    extra = {"v_head.summary.weight": (1, 16), "v_head.summary.bias": (1,)}
    folder = saved(tmp_path, "LlamaForCausalLM", LLAMA, architectures=named, extra=extra)
    loaded = load(folder, say=said)
    stored = load_file(folder / "model.safetensors")["lm_head.weight"]
    assert torch.equal(token_matrices(loaded.model)[UNEMBED], stored)
    assert said == [
        "loaded as LlamaForCausalLM: LlamaModel uses fewer of the stored weights",
        "note: not used, as the model has no such part: v_head.summary.bias, "
        "v_head.summary.weight",
    ]


def test_a_tied_head_is_not_stored_and_kept_all_the_same(tmp_path, said):
    folder = saved(
        tmp_path,
        "GPT2LMHeadModel",
        GPT2,
        architectures=["GPT2WithValueHead"],
        extra={"v_head.weight": (1, 16)},
    )
    assert "lm_head.weight" not in load_file(folder / "model.safetensors")
    loaded = load(folder, say=said)
    assert type(loaded.model).__name__ == "GPT2LMHeadModel"


def test_the_larger_of_two_heads_decides(tmp_path):
    extra = {"score.weight": (2, 16)}
    named = ["LlamaForSequenceClassification"]
    folder = saved(tmp_path, "LlamaForCausalLM", LLAMA, architectures=named, extra=extra)
    assert type(load(folder).model).__name__ == "LlamaForCausalLM"


def test_a_head_that_is_larger_than_what_is_unused_stays(tmp_path):
    config = transformers.LlamaConfig(
        **SIZES, num_key_value_heads=2, num_labels=99, tie_word_embeddings=False
    )
    named, extra = ["LlamaForSequenceClassification"], {"lm_head.weight": (60, 16)}
    folder = saved(
        tmp_path, "LlamaForSequenceClassification", config, architectures=named, extra=extra
    )
    assert type(load(folder).model).__name__ == "LlamaForSequenceClassification"


@pytest.mark.parametrize("kind", ["BertForMaskedLM", "BertForPreTraining"])
@pytest.mark.parametrize("named", [["BertModel"], None])
def test_a_masked_head_beside_others_is_kept(tmp_path, kind, named):
    folder = saved(tmp_path, kind, BERT, architectures=named)
    loaded = load(folder)
    assert type(loaded.model).__name__ == "BertForMaskedLM"
    stored = load_file(folder / "model.safetensors")
    head = loaded.model.state_dict()["cls.predictions.transform.dense.weight"]
    assert torch.equal(head, stored["cls.predictions.transform.dense.weight"])


@pytest.mark.parametrize(
    ("kind", "config", "named"),
    [
        ("LlamaModel", LLAMA, ["LlamaModel"]),
        ("LlamaModel", LLAMA, ["SomethingElse"]),
        ("BertModel", BERT, ["BertModel"]),
        ("GPT2Model", GPT2, ["GPT2WithValueHead"]),
        ("LlamaForCausalLM", LLAMA, ["LlamaForCausalLM"]),
    ],
)
def test_nothing_changes_where_all_weights_are_used(tmp_path, said, kind, config, named):
    folder = saved(tmp_path, kind, config, architectures=named)
    assert type(load(folder, say=said).model).__name__ == kind
    assert said == []


def test_a_head_of_another_shape_is_none(tmp_path):
    folder = saved(
        tmp_path,
        "LlamaModel",
        LLAMA,
        architectures=["LlamaModel"],
        extra={"lm_head.weight": (7, 16)},
    )
    assert type(load(folder).model).__name__ == "LlamaModel"


def test_a_decoder_is_asked_for_a_causal_head_first():
    both = [
        next(kind.__name__ for kind in candidates(transformers.BertConfig(is_decoder=each)))
        for each in (True, False)
    ]
    assert both == ["BertLMHeadModel", "BertForMaskedLM"]

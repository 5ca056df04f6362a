"""A corpus, a small Llama whose heads share keys, and three checkpoints of one."""

import pytest
import torch


@pytest.fixture(scope="session")
def corpus(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text("\n".join(texts))
    return path


def small_llama(tiny, folder, drift=0.0):
    """Write a small random Llama: two key heads for four heads.

    With `drift`, queries and keys of head 0 of layer 0 get a common vector: their means align.
    """
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(tiny)
    tokenizer.save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, attention_bias=True,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    attention = model.model.layers[0].self_attn
    with torch.no_grad():
        attention.q_proj.bias[:8] += drift
        attention.k_proj.bias[:8] += drift
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def llama(tiny, tmp_path_factory):
    """Return the folder of a small random Llama."""
    return small_llama(tiny, tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="session")
def series(tiny, tmp_path_factory):
    """Return a folder of three checkpoints whose first head drifts."""
    folder = tmp_path_factory.mktemp("series")
    for step, drift in ((0, 0.0), (10, 1.0), (100, 3.0)):
        small_llama(tiny, folder / f"step_{step}", drift)
    return folder

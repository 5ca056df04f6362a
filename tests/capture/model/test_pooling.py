"""Pooling, by definition and against sentence-transformers."""

import json

import pytest
import torch

from isoscope.capture.model.load import load
from isoscope.capture.model.pooling import MODES, Pooling, read_pooling
from isoscope.errors import IsoscopeError

KIND = "sentence_transformers.models."
SENTENCES = ["the cat sat on the mat", "rain", "a dog barked at the old house in the rain"]


def modules(folder, *listed):
    content = [
        {"idx": i, "name": str(i), "path": path, "type": KIND + kind}
        for i, (kind, path) in enumerate(listed)
    ]
    (folder / "modules.json").write_text(json.dumps(content))


def pools(folder, **given):
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(given))


def states_of(loaded, sentences, length=None):
    batch = loaded.tokenizer(
        sentences, padding=True, truncation=True, max_length=length or 64, return_tensors="pt"
    )
    with torch.no_grad():
        return loaded.body(**batch).last_hidden_state, batch["attention_mask"]


def test_a_plain_folder_does_not_pool(tmp_path, said):
    assert read_pooling(tmp_path, say=said) == (tmp_path, None)


def test_settings_are_read(tmp_path, said):
    modules(
        tmp_path, ("Transformer", "0_Transformer"), ("Pooling", "1_Pooling"), ("Normalize", "2")
    )
    pools(tmp_path, pooling_mode_cls_token=True, pooling_mode_mean_tokens=False)
    (tmp_path / "0_Transformer").mkdir()
    texts = {"max_seq_length": 128, "do_lower_case": True}
    (tmp_path / "0_Transformer" / "sentence_bert_config.json").write_text(json.dumps(texts))
    whole = {"prompts": {"query": "query: "}, "default_prompt_name": "query"}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(whole))
    network, pooling = read_pooling(tmp_path, say=said)
    assert network == tmp_path / "0_Transformer"
    assert pooling == Pooling(
        "cls", True, 128, {"query": "query: "}, default_prompt="query", lower=True
    )


@pytest.mark.parametrize(
    ("given", "mode"),
    [
        ({"pooling_mode": "lasttoken"}, "last"),
        ({"pooling_mode": ["mean", "max"]}, "mean+max"),
        ({"pooling_mode_max_tokens": True, "pooling_mode_mean_tokens": True}, "mean+max"),
        ({}, "mean"),
    ],
)
def test_modes_have_old_and_new_names(tmp_path, said, given, mode):
    modules(tmp_path, ("Transformer", ""), ("Pooling", "1_Pooling"))
    pools(tmp_path, **given)
    assert read_pooling(tmp_path, say=said)[1].mode == mode


def test_an_unknown_mode_is_refused(tmp_path, said):
    modules(tmp_path, ("Transformer", ""), ("Pooling", "1_Pooling"))
    pools(tmp_path, pooling_mode="median")
    with pytest.raises(IsoscopeError, match="'median'"):
        read_pooling(tmp_path, say=said)


def test_a_module_that_is_not_known_is_reported(tmp_path, said):
    modules(tmp_path, ("Transformer", ""), ("Pooling", "1_Pooling"), ("LSTM", "2"))
    pools(tmp_path, pooling_mode="mean")
    assert read_pooling(tmp_path, say=said)[1] == Pooling()
    assert said == ["warning: pooled vectors are those before LSTM, which is not applied"]


@pytest.mark.parametrize("content", ["{}", "[]", "[3]", '[{"type": "x", "path": "../../a"}]'])
def test_strange_lists_of_modules_are_refused(tmp_path, said, content):
    (tmp_path / "modules.json").write_text(content)
    with pytest.raises(IsoscopeError) as e:
        read_pooling(tmp_path, say=said)
    assert e.value.slug == "model-unreadable"


def by_hand(mode, rows):
    """Pool the rows of one document by definition."""
    n = len(rows)
    if mode in ("cls", "last"):
        return rows[0 if mode == "cls" else -1]
    if mode == "max":
        return rows.max(dim=0).values
    if mode == "weighted-mean":
        weight = torch.arange(1.0, n + 1)[:, None]
        return (rows * weight).sum(dim=0) / weight.sum()
    return rows.sum(dim=0) / (n**0.5 if mode == "mean-sqrt" else n)


@pytest.mark.parametrize("mode", sorted(set(MODES.values())))
@pytest.mark.parametrize("side", ["right", "left"])
def test_padding_on_either_side_is_excluded(mode, side):
    states = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(1))
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    mask = mask.flip(1) if side == "left" else mask
    pooled = Pooling(mode).pool(states, mask)
    for i in range(2):
        assert torch.allclose(pooled[i], by_hand(mode, states[i][mask[i].bool()]), atol=1e-6)


def test_several_modes_stand_side_by_side_and_rows_can_be_normalised():
    states, mask = torch.ones(1, 4, 3), torch.ones(1, 4)
    pooled = Pooling("mean+max", normalise=True).pool(states, mask)
    assert pooled.shape == (1, 6)
    assert torch.allclose(pooled.norm(dim=-1), torch.ones(1))


@pytest.mark.parametrize("mode", ["cls", "mean", "max", "lasttoken", "mean_sqrt_len_tokens"])
def test_it_agrees_with_sentence_transformers(tiny, tmp_path, mode):
    library = pytest.importorskip("sentence_transformers")
    from sentence_transformers.sentence_transformer.modules import (
        Dense,
        Normalize,
        Transformer,
    )
    from sentence_transformers.sentence_transformer.modules import Pooling as Theirs

    torch.manual_seed(0)
    network = Transformer(str(tiny("bert-body")), max_seq_length=12)
    parts = [network, Theirs(32, pooling_mode=mode), Dense(32, 8), Normalize()]
    whole = library.SentenceTransformer(modules=parts, device="cpu")
    whole.save(str(tmp_path / "whole"))
    expected = whole.encode(SENTENCES, convert_to_tensor=True)
    loaded = load(tmp_path / "whole")
    assert loaded.pooling.max_seq_length == 12
    pooled = loaded.pooling.pool(*states_of(loaded, SENTENCES, 12))
    assert torch.allclose(pooled, expected, atol=1e-6)


@pytest.mark.real
def test_minilm_agrees_with_sentence_transformers(minilm):
    library = pytest.importorskip("sentence_transformers")
    loaded = load(minilm)
    assert loaded.pooling == Pooling("mean", normalise=True, max_seq_length=256)
    expected = library.SentenceTransformer(str(minilm), device="cpu").encode(
        SENTENCES, convert_to_tensor=True
    )
    pooled = loaded.pooling.pool(*states_of(loaded, SENTENCES, 256))
    assert torch.allclose(pooled, expected, atol=1e-5)

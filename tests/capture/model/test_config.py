"""Configurations: known, unknown, old, and hostile ones."""

import json
import sys

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from isoscope.capture.model.config import class_of, read_config, weight_names
from isoscope.capture.model.load import load
from isoscope.errors import IsoscopeError


def rewrite(folder, **changes):
    path = folder / "config.json"
    given = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({k: v for k, v in given.items() if v is not None}))
    return folder


def read(folder, said, trust=False):
    return read_config(folder, None, trust=trust, say=said)


def test_the_class_is_the_one_the_config_names(tiny, said):
    config = read(tiny("gpt2"), said)
    assert class_of(config, gguf=False) is transformers.GPT2LMHeadModel


@pytest.mark.parametrize("named", [None, ["NoSuchModel"], ["pipeline"], ["GPT2Model"], [3]])
def test_without_a_class_that_fits_it_is_the_headless_one(tiny, said, named):
    config = read(tiny("bert"), said)
    config.architectures = named
    assert class_of(config, gguf=False) is transformers.AutoModel


def test_a_gguf_file_has_a_head_where_its_kind_has_one(tiny, said):
    config = read(tiny("gpt2"), said)
    config.architectures = None
    assert class_of(config, gguf=True) is transformers.AutoModelForCausalLM


def test_no_config_is_no_model(tmp_path, said):
    with pytest.raises(IsoscopeError, match=r"got no config\.json") as e:
        read(tmp_path, said)
    assert e.value.slug == "model-not-found"


def test_an_unknown_type_is_named(tiny, said):
    with pytest.raises(IsoscopeError, match="got 'berd'") as e:
        read(rewrite(tiny(), model_type="berd"), said)
    assert e.value.slug == "model-unreadable"


@pytest.mark.parametrize("kind", ["berd", None])
def test_code_in_the_folder_is_not_run_unless_requested(
    tiny, said, tmp_path, monkeypatch, kind
):
    modules = str(tmp_path / "modules")  # where transformers copies code to
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", modules)
    monkeypatch.setattr("sys.path", list(sys.path))
    folder = tiny(name=f"own_{kind}")
    mark = tmp_path / "ran"
    (folder / "configuration_own.py").write_text(
        "import pathlib\n"
        f"pathlib.Path({str(mark)!r}).touch()\n"
        "from transformers import BertConfig\n"
        "class OwnConfig(BertConfig):\n    model_type = 'berd'\n"
    )
    own = {"AutoConfig": "configuration_own.OwnConfig"}
    rewrite(folder, model_type=kind, auto_map=own)
    with pytest.raises(IsoscopeError, match="brings its own code") as e:
        read(folder, said)
    assert e.value.slug == "model-remote-code"
    assert "--trust-remote-code" in e.value.hint
    assert not mark.exists()
    assert read(folder, said, trust=True).model_type == "berd"
    assert mark.exists()


def test_more_layers_than_any_model_has_are_refused(tiny, said):
    with pytest.raises(IsoscopeError, match="1000000000 as num_hidden_layers"):
        read(rewrite(tiny(), num_hidden_layers=10**9), said)


def test_values_of_the_wrong_kind_are_an_error(tiny, said):
    with pytest.raises(IsoscopeError) as e:
        read(rewrite(tiny(), hidden_size="wide"), said)
    assert e.value.slug == "model-unreadable"


@pytest.mark.parametrize("key", ["attn_implementation", "_attn_implementation"])
def test_a_config_cannot_ask_for_attention_from_a_repository(tiny, said, key):
    folder = rewrite(tiny(), **{key: "someone/kernel"})
    assert read(folder, said)._attn_implementation is None
    assert load(folder).model.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("kind", ["bert", "bert-body", "gpt2"])
def test_without_a_type_the_weights_tell(tiny, said, kind):
    folder = rewrite(tiny(kind), model_type=None, architectures=None)
    expected = kind.removesuffix("-body")
    assert read(folder, said).model_type == expected
    assert said == [f"config.json names no model_type; its weights are those of {expected}"]


def test_weights_that_could_be_robertas_do_not_tell(tiny, said):
    folder = rewrite(tiny("bert-body"), model_type=None, type_vocab_size=1)
    with pytest.raises(IsoscopeError, match="expected a model_type"):
        read(folder, said)


def test_strange_weights_do_not_tell(tiny, said):
    folder = rewrite(tiny(), model_type=None)
    save_file({"a": torch.zeros(1)}, folder / "model.safetensors")
    with pytest.raises(IsoscopeError, match="expected a model_type") as e:
        read(folder, said)
    assert '"model_type": "bert"' in e.value.hint


def test_names_of_weights_are_read_from_either_format(tiny):
    folder = tiny()
    stored = load_file(folder / "model.safetensors")
    assert set(weight_names(folder)) == set(stored)
    torch.save(stored, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert set(weight_names(folder)) == set(stored)


def test_names_of_broken_weights_are_an_error(tiny):
    folder = tiny()
    (folder / "model.safetensors").write_bytes(b"\xff" * 64)
    with pytest.raises(IsoscopeError, match=r"model\.safetensors") as e:
        weight_names(folder)
    assert e.value.slug == "model-unreadable"

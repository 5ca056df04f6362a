"""Weights are read as they are, refused, or drawn at random."""

import importlib.util
import json
import pickle

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from isoscope.capture.model.load import load
from isoscope.capture.model.network import (
    Placement,
    build_untrained,
    read_trained,
    sha_of_weights,
)
from isoscope.errors import IsoscopeError

CPU = Placement(torch.float32, torch.device("cpu"), None)


def stored(folder):
    return load_file(folder / "model.safetensors")


def as_torch_file(folder):
    torch.save(stored(folder), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    return folder


class Payload:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_weights_are_read_as_they_are_and_rest(tiny, said):
    folder = tiny("gpt2")
    config = transformers.AutoConfig.from_pretrained(folder)
    paths = [folder / "model.safetensors"]
    kind = transformers.GPT2LMHeadModel
    model = read_trained(kind, config, paths, CPU, gguf=False, trust=False, say=said)
    ours = model.state_dict()
    assert all(torch.equal(ours[name], tensor) for name, tensor in stored(folder).items())
    assert not model.training
    assert not any(p.requires_grad for p in model.parameters())
    assert said == []


def test_a_torch_file_holds_the_same_weights(tiny):
    folder = tiny()
    before = load(folder).model.state_dict()
    after = load(as_torch_file(folder)).model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("save", [torch.save, lambda o, p: p.write_bytes(pickle.dumps(o))])
def test_a_pickle_that_would_run_code_is_refused_and_not_run(tiny, tmp_path, save):
    folder = as_torch_file(tiny())
    mark = tmp_path / "ran"
    save({"a": Payload(mark)}, folder / "pytorch_model.bin")
    with pytest.raises(IsoscopeError, match="pickle that does more") as e:
        load(folder)
    assert e.value.slug == "model-pickle"
    assert not mark.exists()


def test_a_pickle_without_a_model_type_is_refused_too(tiny, tmp_path):
    folder = as_torch_file(tiny())
    mark = tmp_path / "ran"
    torch.save({"a": Payload(mark)}, folder / "pytorch_model.bin")
    given = json.loads((folder / "config.json").read_text())
    del given["model_type"]
    (folder / "config.json").write_text(json.dumps(given))
    with pytest.raises(IsoscopeError) as e:
        load(folder)
    assert e.value.slug == "model-pickle"
    assert not mark.exists()


@pytest.mark.parametrize("content", [b"", b"\xff" * 100, "half"])
def test_damaged_safetensors_are_an_error(tiny, content):
    path = tiny() / "model.safetensors"
    path.write_bytes(path.read_bytes()[:5000] if content == "half" else content)
    with pytest.raises(IsoscopeError) as e:
        load(path.parent)
    assert e.value.slug == "model-unreadable"


def test_a_damaged_torch_file_is_an_error(tiny):
    path = as_torch_file(tiny()) / "pytorch_model.bin"
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(IsoscopeError) as e:
        load(path.parent)
    assert e.value.slug in ("model-unreadable", "model-pickle")


def test_a_damaged_gguf_file_is_an_error(tmp_path):
    (tmp_path / "a.gguf").write_bytes(b"GGUF" + b"\xff" * 100)
    with pytest.raises(IsoscopeError, match=r"a\.gguf") as e:
        load(tmp_path / "a.gguf")
    assert e.value.slug == "model-unreadable"


def test_parts_named_by_an_index_are_put_together(tiny):
    folder = tiny()
    before = load(folder)
    weights = stored(folder)
    names = sorted(weights)
    shares = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, share in shares.items():
        save_file({n: weights[n] for n in share}, folder / file, {"format": "pt"})
    where = {n: file for file, share in shares.items() for n in share}
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": where})
    )
    (folder / "model.safetensors").unlink()
    after = load(folder)
    ours, theirs = before.model.state_dict(), after.model.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_numbers_are_of_the_dtype_requested(tiny, dtype):
    loaded = load(tiny("gpt2"), dtype=dtype)
    assert {p.dtype for p in loaded.model.parameters()} == {getattr(torch, dtype)}
    assert loaded.identity["dtype"] == dtype


def test_without_a_dtype_half_precision_files_become_float32(tiny, tmp_path):
    transformers.GPT2LMHeadModel.from_pretrained(
        tiny("gpt2"), dtype=torch.float16
    ).save_pretrained(tmp_path / "half")
    loaded = load(tmp_path / "half")
    assert {p.dtype for p in loaded.model.parameters()} == {torch.float32}
    assert loaded.identity["dtype"] == "float32"


@pytest.mark.parametrize("device_map", ["cpu", "auto"])
@pytest.mark.parametrize("random", [False, True])
def test_a_device_map_is_passed_on(tiny, device_map, random):
    loaded = load(tiny("gpt2"), device_map=device_map, untrained=random)
    with torch.no_grad():
        states = loaded.body(torch.arange(5)[None]).last_hidden_state
    assert states.shape == (1, 5, 32)


def test_random_weights_are_those_of_their_seed_and_leave_the_generator_alone(tiny):
    folder = tiny("gpt2")
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first, again = load(folder, untrained=True, seed=1), load(folder, untrained=True, seed=1)
    assert torch.equal(torch.rand(3), expected)
    other = load(folder, untrained=True, seed=2)
    assert first.identity["sha"] == again.identity["sha"] != other.identity["sha"]
    assert type(first.model) is transformers.GPT2LMHeadModel
    assert not first.model.training
    assert first.identity["sha"] != load(folder).identity["sha"]


def test_random_weights_are_the_same_in_every_dtype(tiny):
    folder = tiny("gpt2")
    full = load(folder, untrained=True).model.state_dict()
    half = load(folder, untrained=True, dtype="bfloat16").model.state_dict()
    assert all(torch.equal(full[name].bfloat16(), half[name]) for name in full)


def test_random_weights_need_nothing_but_a_config(tiny):
    folder = tiny("t5")
    (folder / "model.safetensors").unlink()
    assert load(folder, untrained=True).identity["untrained"]


def test_the_sha_of_weights_sees_every_one_of_them():
    config = transformers.GPT2Config(vocab_size=9, n_embd=8, n_layer=1, n_head=1, n_positions=4)
    model = build_untrained(transformers.AutoModel, config, CPU, trust=False, seed=0)
    before = sha_of_weights(model)
    assert before == sha_of_weights(model)
    model.ln_f.bias[3] += 1e-6
    assert sha_of_weights(model) != before


def test_a_model_that_cannot_fit_is_refused_before_memory_is_taken(tiny):
    folder = tiny("gpt2")
    given = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**given, "vocab_size": 10**12}))
    for random in (False, True):
        with pytest.raises(IsoscopeError, match=r"needs at least .* GiB of memory") as e:
            load(folder, untrained=random)
        assert e.value.slug == "model-memory"


def test_weights_that_need_a_package_which_is_missing_say_so(tiny):
    if importlib.util.find_spec("bitsandbytes"):
        pytest.skip("bitsandbytes is installed")
    folder = tiny("gpt2")
    given = json.loads((folder / "config.json").read_text())
    packed = {"quant_method": "bitsandbytes", "load_in_8bit": True}
    (folder / "config.json").write_text(json.dumps({**given, "quantization_config": packed}))
    with pytest.raises(
        IsoscopeError, match=r"with the packages installed: .*bitsandbytes"
    ) as e:
        load(folder)
    assert e.value.slug == "model-unreadable"

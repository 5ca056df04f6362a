"""Weights that do not fit never pass in silence."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from isoscope.capture.model.load import load
from isoscope.capture.model.network import check_loading, shorten
from isoscope.errors import IsoscopeError

CLEAN = {"missing_keys": set(), "unexpected_keys": set(), "mismatched_keys": set()}


def changed(folder, *, drop=lambda name: False, add=None):
    path = folder / "model.safetensors"
    kept = {n: t for n, t in load_file(path).items() if not drop(n)}
    save_file({**kept, **(add or {})}, path, {"format": "pt"})
    return folder


def test_weights_missing_in_the_body_are_named(tiny):
    folder = changed(tiny(), drop=lambda name: "layer.1.output" in name)
    with pytest.raises(
        IsoscopeError, match=r"layer\.1\.output\.LayerNorm\.bias, .* 1 more"
    ) as e:
        load(folder)
    assert e.value.slug == "model-weights-missing"


@pytest.mark.parametrize("kind", ["gpt2", "t5", "whisper"])
def test_the_body_is_known_in_every_kind_of_model(tiny, kind):
    names = sorted(load_file(tiny(kind) / "model.safetensors"))
    victim = next(n for n in names if ".1." in n)
    with pytest.raises(IsoscopeError, match=victim.replace(".", r"\.")):
        load(changed(tiny(kind), drop=lambda name: name == victim))


def test_a_missing_head_is_reported(tiny, said):
    load(changed(tiny(), drop=lambda name: name.startswith("cls.")), say=said)
    assert len(said) == 1
    assert said[0].startswith("warning: random weights for cls.predictions.")


def test_a_missing_pooler_is_reported(tiny, said):
    load(changed(tiny("bert-body"), drop=lambda name: "pooler" in name), say=said)
    assert said == [
        "warning: random weights for pooler.dense.bias, pooler.dense.weight, "
        "which are not stored"
    ]


def test_parts_the_model_does_not_have_are_reported(tiny, said):
    load(changed(tiny(), add={"extra.weight": torch.zeros(2)}), say=said)
    assert said == ["note: not used, as the model has no such part: extra.weight"]


def test_layers_the_config_does_not_know_of_are_an_error(tiny):
    folder = tiny()
    given = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**given, "num_hidden_layers": 1}))
    with pytest.raises(IsoscopeError, match=r"more of them .*layer\.1\.") as e:
        load(folder)
    assert e.value.slug == "model-weights-mismatch"


def test_shapes_that_differ_are_named_with_both(tiny):
    folder = tiny()
    given = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**given, "intermediate_size": 48}))
    with pytest.raises(IsoscopeError, match=r"expected shape \(48,\) .* got \(64,\)") as e:
        load(folder)
    assert e.value.slug == "model-weights-mismatch"


def test_a_clean_report_says_nothing(tiny, said):
    loaded = load(tiny())
    check_loading(loaded.model, loaded.body, CLEAN, tiny(), said)
    assert said == []


def test_long_lists_are_shortened():
    assert shorten("a") == "a"
    assert shorten("abc") == "a, b, c"
    assert shorten("abcde") == "a, b, c and 2 more"

"""The dense layer after pooling, read from disk."""

import json

import pytest
import torch
from safetensors.torch import save_file

from isoscope.capture.model.pooling import read_dense
from isoscope.errors import IsoscopeError


def saved(
    folder, *, activation="torch.nn.modules.activation.Tanh", bias=True, weights=None, **more
):
    given = {"in_features": 3, "out_features": 2, "bias": bias} | more
    given["activation_function"] = activation
    (folder / "config.json").write_text(json.dumps(given))
    generator = torch.Generator().manual_seed(0)
    stored = {"linear.weight": torch.randn(2, 3, generator=generator)}
    if bias:
        stored["linear.bias"] = torch.randn(2, generator=generator)
    stored = stored if weights is None else weights
    save_file(stored, folder / "model.safetensors")
    return stored


@pytest.mark.parametrize("bias", [True, False])
def test_it_is_a_linear_map_and_its_activation(tmp_path, bias):
    stored = saved(tmp_path, bias=bias)
    rows = torch.arange(12.0).reshape(4, 3) / 10
    expected = rows @ stored["linear.weight"].T + stored.get("linear.bias", 0)
    assert torch.allclose(read_dense(tmp_path)(rows), expected.tanh(), atol=1e-6)


def test_an_activation_is_never_imported(tmp_path):
    saved(tmp_path, activation="os.system")
    with pytest.raises(IsoscopeError, match=r"a dense layer with os\.system"):
        read_dense(tmp_path)


@pytest.mark.parametrize(
    "more", [{"in_features": 10**9}, {"out_features": "x"}, {"in_features": 4}]
)
def test_sizes_are_checked_before_anything_is_made(tmp_path, more):
    saved(tmp_path, **more)
    with pytest.raises(IsoscopeError) as e:
        read_dense(tmp_path)
    assert e.value.slug == "model-unreadable"


def test_a_residual_is_refused_rather_than_excluded(tmp_path):
    saved(tmp_path, use_residual=True)
    with pytest.raises(IsoscopeError, match="and a residual"):
        read_dense(tmp_path)


def test_missing_and_broken_weights_are_errors(tmp_path):
    saved(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 32)
    with pytest.raises(IsoscopeError):
        read_dense(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(IsoscopeError, match="No such file"):
        read_dense(tmp_path)


def test_a_torch_file_will_do(tmp_path):
    stored = saved(tmp_path)
    torch.save(stored, tmp_path / "pytorch_model.bin")
    (tmp_path / "model.safetensors").unlink()
    assert torch.equal(read_dense(tmp_path).linear.weight, stored["linear.weight"])

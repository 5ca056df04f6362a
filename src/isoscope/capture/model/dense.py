"""The dense layer some sentence-transformers folders put after pooling."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from isoscope.capture.model.files import read_object, unreadable

# By name, never by import: the name comes out of a file.
ACTIVATIONS = {"Identity": nn.Identity, "Tanh": nn.Tanh, "ReLU": nn.ReLU, "GELU": nn.GELU,
               "SiLU": nn.SiLU, "Sigmoid": nn.Sigmoid, "ELU": nn.ELU}  # fmt: skip
WIDEST = 2**20


class Dense(nn.Module):
    """A linear map and its activation."""

    def __init__(self, linear: nn.Linear, activation: nn.Module) -> None:
        super().__init__()
        self.linear = linear
        self.activation = activation

    def forward(self, vectors: Tensor) -> Tensor:
        """Map pooled vectors, in the layer's own precision."""
        return self.activation(self.linear(vectors.to(self.linear.weight.dtype)))


def dense_of(folder: Path) -> Dense:
    """Return the dense layer stored in a folder."""
    path = folder / "config.json"
    given = read_object(path)
    width, out = given.get("in_features"), given.get("out_features")
    named = str(given.get("activation_function", "torch.nn.modules.activation.Tanh"))
    activation = ACTIVATIONS.get(named.rpartition(".")[2])
    if not (isinstance(width, int) and isinstance(out, int) and 0 < max(width, out) <= WIDEST):
        raise unreadable(path, f"a dense layer from {width} to {out}")
    if activation is None or given.get("use_residual"):
        raise unreadable(
            path,
            f"a dense layer with {named}" + " and a residual" * bool(given.get("use_residual")),
        )
    stored = _stored(folder)
    shapes = {name: tuple(tensor.shape) for name, tensor in stored.items()}
    expected: dict[str, tuple[int, ...]] = {"linear.weight": (out, width)}
    if given.get("bias", True):
        expected["linear.bias"] = (out,)
    if shapes != expected:
        raise unreadable(folder, f"weights of shapes {shapes}")
    with torch.device("meta"):
        linear = nn.Linear(width, out, bias="linear.bias" in expected)
    layer = Dense(linear, activation())
    layer.load_state_dict(stored, assign=True)
    return layer.float().eval().requires_grad_(False)


def _stored(folder: Path) -> dict[str, Any]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        if (folder / "model.safetensors").is_file():
            return load_file(folder / "model.safetensors")
        return torch.load(folder / "pytorch_model.bin", map_location="cpu", weights_only=True)
    except (OSError, SafetensorError, RuntimeError, ValueError) as error:
        raise unreadable(folder, f"'{str(error).splitlines()[0]}'") from error

"""How a sentence-transformers folder makes one vector of the states of its tokens."""

from collections.abc import Callable
from pathlib import Path
from pickle import UnpicklingError

import torch
from torch import Tensor, nn

from isoscope.capture.model.folder import (
    first_line,
    inside,
    read_json,
    read_object,
    refused_pickle,
    unreadable,
)
from isoscope.dataclass import dataclass

MODES = {
    "cls": "cls",
    "cls_token": "cls",
    "mean": "mean",
    "mean_tokens": "mean",
    "max": "max",
    "max_tokens": "max",
    "lasttoken": "last",
    "last": "last",
    "mean_sqrt_len_tokens": "mean-sqrt",
    "weightedmean": "weighted-mean",
    "weightedmean_tokens": "weighted-mean",
}
NO_LIMIT = 10**9


@dataclass(frozen=True)
class Pooling:
    """The mode, what comes after it, and what is done to texts before."""

    mode: str = "mean"  # cls, mean, max, last, mean-sqrt, weighted-mean; several joined by +
    normalise: bool = False
    max_seq_length: int | None = None
    prompts: dict[str, str] | None = None
    default_prompt: str | None = None  # the name of one of them
    include_prompt: bool = True  # whether tokens of the prompt are pooled too
    lower: bool = False  # texts are lowered before tokenising
    dense: tuple["Dense", ...] = ()

    def pool(self, states: Tensor, mask: Tensor) -> Tensor:
        """Return one vector per document from its token states (b, t, d) and mask (b, t).

        Tokens to be excluded, such as a prompt's, are zero in the mask.
        """
        parts = [pool_states(mode, states, mask) for mode in self.mode.split("+")]
        vectors = torch.cat(parts, dim=-1)
        for layer in self.dense:
            vectors = layer(vectors)
        return nn.functional.normalize(vectors, dim=-1) if self.normalise else vectors


def read_pooling(
    folder: Path, *, say: Callable[[str], None], weights: bool = True
) -> tuple[Path, Pooling | None]:
    """Return the folder of the network and how it pools; plain folders do not.

    Without weights, as for random models, dense layers after the pooling are skipped.
    """
    path = folder / "modules.json"
    if not path.is_file():
        return folder, None
    network, given = folder, None
    normalise, dense = False, list[Dense]()
    for kind, where in _modules(path):
        if kind == "Transformer":
            network = where
        elif kind == "Pooling":
            given = read_object(where / "config.json")
        elif kind == "Normalize":
            normalise = True
        elif kind == "Dense" and not normalise:
            dense += [read_dense(where)] if weights else []
        elif kind != "Dropout":
            say(f"warning: pooled vectors are those before {kind}, which is not applied")
            break
    if given is None:
        return network, None
    return network, _describe(folder, network, given, normalise, tuple(dense))


def _modules(path: Path) -> list[tuple[str, Path]]:
    """Return the kind and folder of each module, in order."""
    listed = read_json(path)
    if not isinstance(listed, list) or not listed:
        raise unreadable(path, "no list of modules")
    found: list[tuple[str, Path]] = []
    for module in listed:
        if not isinstance(module, dict):
            raise unreadable(path, "a module that is no object")
        kind = str(module.get("type", "")).rpartition(".")[2]
        found.append((kind, inside(path.parent, module.get("path", ""), path)))
    return found


def _describe(
    folder: Path,
    network: Path,
    given: dict[str, object],
    normalise: bool,
    dense: tuple["Dense", ...],
) -> Pooling:
    texts = _optional(network / "sentence_bert_config.json")
    whole = _optional(folder / "config_sentence_transformers.json")
    # Newer folders say it to the tokenizer instead, where a huge number means no limit.
    length = texts.get("max_seq_length")
    if length is None:
        length = _optional(network / "tokenizer_config.json").get("model_max_length")
    prompts, default = _prompts(whole, folder / "config_sentence_transformers.json")
    return Pooling(
        mode=_mode(given, folder),
        normalise=normalise,
        max_seq_length=_length(length, network),
        prompts=prompts,
        default_prompt=default,
        include_prompt=bool(given.get("include_prompt", True)),
        lower=bool(texts.get("do_lower_case", False)),
        dense=dense,
    )


def _length(length: object, folder: Path) -> int | None:
    """Return the longest sequence, None where there is no limit."""
    if length is None:
        return None
    if isinstance(length, bool) or not isinstance(length, int | float) or length != length:
        raise unreadable(folder, f"{length!r} as the longest sequence")
    return int(length) if 0 < length < NO_LIMIT else None


def _prompts(whole: dict[str, object], path: Path) -> tuple[dict[str, str] | None, str | None]:
    """Return the prompts by name, and which of them goes before all texts."""
    prompts, default = whole.get("prompts"), whole.get("default_prompt_name")
    if prompts is not None and not isinstance(prompts, dict):
        raise unreadable(path, f"prompts of kind {type(prompts).__name__}")
    found: dict[str, str] = {}
    for name, text in (prompts or {}).items():
        if not isinstance(text, str):
            raise unreadable(path, f"a prompt of kind {type(text).__name__}")
        found[str(name)] = text
    if default is not None and (not isinstance(default, str) or default not in found):
        raise unreadable(path, f"no prompt called {default!r}, which it says is the usual one")
    return (found or None), default


def _mode(given: dict[str, object], folder: Path) -> str:
    named = given.get("pooling_mode")
    if named is None:
        prefix, order = "pooling_mode_", list(MODES)
        modes = [k.removeprefix(prefix) for k, v in given.items() if k.startswith(prefix) and v]
        modes.sort(key=lambda name: order.index(name) if name in MODES else len(MODES))
    else:
        modes = list(map(str, named)) if isinstance(named, list) else [str(named)]
    for mode in modes:
        if mode not in MODES:
            raise unreadable(folder, f"pooling of mode {mode!r}")
    return "+".join(MODES[mode] for mode in modes) or "mean"


def _optional(path: Path) -> dict[str, object]:
    return read_object(path) if path.is_file() else {}


def pool_states(mode: str, states: Tensor, mask: Tensor) -> Tensor:
    """Return one vector per document, (b, d), from states (b, t, d) and a mask (b, t)."""
    kept = mask.to(torch.bool)
    rows = torch.arange(len(states), device=states.device)
    if mode == "cls":
        return states[rows, kept.int().argmax(dim=1)]
    if mode == "last":
        return states[rows, kept.shape[1] - 1 - kept.flip(1).int().argmax(dim=1)]
    if mode == "max":
        return states.masked_fill(~kept[..., None], float("-inf")).amax(dim=1)
    weight = kept.to(states.dtype)
    if mode == "weighted-mean":
        first = kept.int().argmax(dim=1, keepdim=True)
        place = torch.arange(1, kept.shape[1] + 1, device=states.device)
        weight = weight * (place[None] - first)
    total = (states * weight[..., None]).sum(dim=1)
    count = weight.sum(dim=1, keepdim=True).clamp(min=1e-9)
    return total / (count.sqrt() if mode == "mean-sqrt" else count)


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


def read_dense(folder: Path) -> Dense:
    """Return the dense layer stored in a folder."""
    path = folder / "config.json"
    given = read_object(path)
    width, out = given.get("in_features"), given.get("out_features")
    named = str(given.get("activation_function", "torch.nn.modules.activation.Tanh"))
    activation = ACTIVATIONS.get(named.rpartition(".")[2])
    sizes = [each for each in (width, out) if isinstance(each, int) and 0 < each <= WIDEST]
    if not (isinstance(width, int) and isinstance(out, int) and len(sizes) == 2):
        raise unreadable(path, f"a dense layer from {width} to {out}")
    if activation is None or given.get("use_residual"):
        raise unreadable(
            path,
            f"a dense layer with {named}" + " and a residual" * bool(given.get("use_residual")),
        )
    stored = _read_weights(folder)
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


def _read_weights(folder: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = folder / "pytorch_model.bin"
    try:
        if (folder / "model.safetensors").is_file():
            return load_file(folder / "model.safetensors")
        stored: object = torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError as error:
        raise refused_pickle(path) from error
    except (OSError, SafetensorError, RuntimeError, ValueError, EOFError, KeyError) as error:
        raise unreadable(folder, f"'{first_line(error)}'") from error
    if not isinstance(stored, dict) or not all(isinstance(t, Tensor) for t in stored.values()):
        raise unreadable(path, f"a {type(stored).__name__} where tensors by name belong")
    return stored


def check_dense(pooling: Pooling, width: int, folder: Path) -> None:
    """Refuse dense layers that do not fit the pooled vectors or each other."""
    width *= len(pooling.mode.split("+"))
    for layer in pooling.dense:
        if layer.linear.in_features != width:
            raise unreadable(
                folder,
                f"a dense layer for vectors of width {layer.linear.in_features} after vectors "
                f"of width {width}",
            )
        width = layer.linear.out_features

"""The configuration of a model: which class it is, before anything is built from it."""

import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from isoscope.capture.model.folder import (
    first_line,
    is_safe,
    read_object,
    refused_pickle,
    unreadable,
    weight_files,
)
from isoscope.capture.model.gguf_header import read_scalars
from isoscope.capture.model.quiet import quiet
from isoscope.errors import IsoscopeError

if TYPE_CHECKING:
    from torch import nn
    from transformers import PretrainedConfig

    from isoscope.capture.model.network import LoadingInfo

HEADLESS, CAUSAL = "AutoModel", "AutoModelForCausalLM"
# More blocks than any model has; building them would never end.
MOST_LAYERS = 10_000
# Settings that may name code to fetch.
FETCHED = ("_attn_implementation", "_experts_implementation")
# Settings that say how many modules are built: a number, or a list with one entry for each or
# with the number of each stage.
COUNTS = {
    "num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers",
    "decoder_layers", "num_decoder_layers", "num_encoder_layers", "depth", "depths",
    "inner_group_num", "num_hidden_groups", "num_encoder_blocks", "num_stages", "num_blocks",
    "block_sizes", "block_repeats", "hidden_sizes", "num_experts", "num_local_experts",
    "n_routed_experts", "num_conv_layers", "conv_dim", "conv_kernel", "conv_stride",
    "tdnn_dim", "tdnn_kernel", "num_adapter_layers", "layers",
}  # fmt: skip
STAGES = {"depths", "block_sizes", "block_repeats", "num_hidden_layers"}  # lists of numbers
BLOCK_COUNT = ".block_count"  # of a GGUF file
DEEPEST = 64  # objects within objects of a configuration
# Configurations from before 2020 have no model_type. A weight that only they have tells.
SIGNS = {
    "encoder.layer.0.attention.self.query.weight": "bert",
    "encoder.albert_layer_groups.0.albert_layers.0.attention.query.weight": "albert",
    "transformer.layer.0.attention.q_lin.weight": "distilbert",
    "h.0.attn.c_attn.weight": "gpt2",
}


class ModelClass(Protocol):
    """A model class of transformers, or one of its Auto classes."""

    def from_pretrained(
        self, folder: Path, **options: object
    ) -> "tuple[nn.Module, LoadingInfo]":
        """Return a model with the weights of a folder, and how loading went."""
        ...

    def from_config(self, config: "PretrainedConfig", **options: object) -> "nn.Module":
        """Return a model with random weights: Auto classes."""
        ...


def read_config(
    folder: Path, gguf: str | None, *, trust: bool, say: Callable[[str], None]
) -> "PretrainedConfig":
    """Return the configuration of a folder or GGUF file as transformers sees it.

    Nothing in it may fetch code: attention from a kernel repository is dropped.
    """
    from transformers import AutoConfig

    stored = {} if gguf else _read_settings(folder, trust)
    if gguf:
        _check_header(folder / gguf)
    options = {"local_files_only": True, "trust_remote_code": trust}
    options |= {"gguf_file": gguf} if gguf else {}
    try:
        if gguf or "model_type" in stored or _has_code(stored):
            with quiet():
                config = AutoConfig.from_pretrained(folder, **options)
        else:
            config = _guess(folder, stored, say)
    except IsoscopeError:
        raise
    except Exception as error:  # each configuration class has its own complaints
        path = folder / (gguf or "config.json")
        raise unreadable(path, f"'{first_line(error)}'") from error
    for name in FETCHED:
        setattr(config, name, None)
    return config


def class_of(config: "PretrainedConfig", *, gguf: bool) -> ModelClass:
    """Return the class to build: the one the configuration names, else the headless one."""
    import transformers

    for name in config.architectures or []:
        kind = getattr(transformers, str(name), None)
        if isinstance(kind, type) and issubclass(kind, transformers.PreTrainedModel):
            fits = kind.config_class
            if fits is not None and isinstance(config, fits):
                return getattr(transformers, name)
        for head in (
            transformers.MODEL_FOR_CAUSAL_LM_MAPPING,
            transformers.MODEL_FOR_MASKED_LM_MAPPING,
        ):
            kind = head.get(type(config), None)  # one that was registered, such as ours
            if getattr(kind, "__name__", None) == name:
                return cast(ModelClass, kind)
    # GGUF files name no class; what has a language model's head was made as one.
    if gguf and type(config) in transformers.MODEL_FOR_CAUSAL_LM_MAPPING:
        return getattr(transformers, CAUSAL)
    return getattr(transformers, HEADLESS)


def _read_settings(folder: Path, trust: bool) -> dict[str, object]:
    from transformers import CONFIG_MAPPING

    path = folder / "config.json"
    if not path.is_file():
        raise IsoscopeError(
            f"expected a model in {folder}, got no config.json",
            hint="name the folder that has config.json and model.safetensors, or a GGUF file",
            slug="model-not-found",
        )
    stored = read_object(path)
    check_counts(path, stored)
    kind = stored.get("model_type")
    if not isinstance(kind, str | None):
        raise unreadable(path, f"{kind!r:.40} as model_type")
    remote = _has_code(stored)
    if kind in CONFIG_MAPPING or (kind is None and not remote):
        return stored
    if not remote:
        raise IsoscopeError(
            f"expected a model type that transformers has, got {kind!r} in {path}",
            hint="look whether a newer transformers has it: pip install -U transformers",
            slug="model-unreadable",
        )
    if not trust:
        raise IsoscopeError(
            f"cannot load {folder} with transformers alone: its config brings its own code",
            hint="read that code; if you trust it, allow it with --trust-remote-code",
            slug="model-remote-code",
        )
    return stored


def check_counts(path: Path, stored: Mapping[str, object], depth: int = 0) -> None:
    """Refuse more modules than any model has, also in configurations within another one."""
    if depth > DEEPEST:
        raise unreadable(path, f"objects within each other {DEEPEST} times")
    for key, value in stored.items():
        if isinstance(value, dict):
            check_counts(path, value, depth + 1)
        elif key in COUNTS:
            count = _count(value)
            if key in STAGES and isinstance(value, list):
                count = max(count, sum(each for each in value if isinstance(each, int)))
            if count > MOST_LAYERS:
                raise unreadable(path, f"{count} as {key}")
    groups = (_count(stored.get(key)) for key in ("inner_group_num", "num_hidden_groups"))
    inner, outer = groups
    if inner * outer > MOST_LAYERS:
        raise unreadable(path, f"{inner} x {outer} layers in groups")


def _count(value: object) -> int:
    """Return how many modules a setting stands for, at the most."""
    if isinstance(value, list):
        return len(value)
    return value if isinstance(value, int) else 0


def _check_header(path: Path) -> None:
    """Refuse a GGUF file whose metadata is broken: its reader would look for it for ever."""
    try:
        found = read_scalars(path)
    except (OSError, ValueError) as error:
        raise unreadable(path, f"'{first_line(error)}'") from error
    for key, value in found.items():
        if key.endswith(BLOCK_COUNT) and not (isinstance(value, int) and value <= MOST_LAYERS):
            raise unreadable(path, f"{value} as {key}")


def _has_code(stored: dict[str, object]) -> bool:
    own = stored.get("auto_map")
    return isinstance(own, dict) and "AutoConfig" in own


def _guess(
    folder: Path, stored: dict[str, object], say: Callable[[str], None]
) -> "PretrainedConfig":
    from transformers import CONFIG_MAPPING

    kind = _kind_by_weights(folder, stored)
    if kind is None:
        raise IsoscopeError(
            f"expected a model_type in {folder / 'config.json'}, got none",
            hint='add it, for example "model_type": "bert"',
            slug="model-unreadable",
        )
    say(f"config.json names no model_type; its weights are those of {kind}")
    return CONFIG_MAPPING[kind].from_dict({**stored, "model_type": kind})


def _kind_by_weights(folder: Path, stored: dict[str, object]) -> str | None:
    names = weight_names(folder)
    for sign, kind in SIGNS.items():
        whose = [name.removesuffix(sign) for name in names if name.endswith(sign)]
        if not whose:
            continue
        if kind != "bert" or whose == ["bert."]:
            return kind
        # roberta has the same names, but counts positions from 2 and has one token type
        return "bert" if whose == [""] and stored.get("type_vocab_size") == 2 else None
    return None


def weight_names(folder: Path) -> list[str]:
    """Return the names of the weights in a folder."""
    return list(weight_shapes(folder))


def weight_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the weights in a folder, by name."""
    import torch
    from safetensors import SafetensorError, safe_open

    paths, found = weight_files(folder), dict[str, tuple[int, ...]]()
    for path in paths:
        try:
            if is_safe(paths):
                with safe_open(path, framework="pt") as file:
                    names = list(file.keys())
                    found |= {each: tuple(file.get_slice(each).get_shape()) for each in names}
            else:
                stored = torch.load(path, map_location="meta", weights_only=True)
                found |= {name: tuple(each.shape) for name, each in stored.items()}
        except pickle.UnpicklingError as error:
            raise refused_pickle(path) from error
        except SafetensorError as error:
            raise unreadable(path, f"'{error}'") from error
    return found

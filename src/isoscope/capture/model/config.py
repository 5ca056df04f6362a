"""The configuration of a model: which class it is, before anything is built from it."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from isoscope.capture.model.files import read_object, unreadable
from isoscope.capture.model.quiet import quiet
from isoscope.capture.model.weights import is_safe, refused_pickle, weight_files
from isoscope.errors import IsoscopeError

# More blocks than any model has; building them would never end.
MOST_LAYERS = 10_000
LAYER_COUNTS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers",
                "decoder_layers", "num_decoder_layers")  # fmt: skip
# Configurations from before 2020 have no model_type. A weight that only they have tells.
SIGNS = {
    "encoder.layer.0.attention.self.query.weight": "bert",
    "encoder.albert_layer_groups.0.albert_layers.0.attention.query.weight": "albert",
    "transformer.layer.0.attention.q_lin.weight": "distilbert",
    "h.0.attn.c_attn.weight": "gpt2",
}


def config_of(
    folder: Path, gguf: str | None, *, trust: bool, say: Callable[[str], None]
) -> Any:
    """Return the configuration of a folder or GGUF file as transformers sees it.

    Nothing it says may fetch code: attention from a kernel repository is set aside.
    """
    from transformers import AutoConfig

    given: dict[str, Any] = {} if gguf else _checked(folder, trust)
    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": trust}
    try:
        if gguf:
            with quiet():
                config: Any = AutoConfig.from_pretrained(folder, gguf_file=gguf, **options)
        elif "model_type" in given or _remote(given):
            with quiet():
                config = AutoConfig.from_pretrained(folder, **options)
        else:
            config = _guessed(folder, given, say)
    except IsoscopeError:
        raise
    except Exception as error:  # each configuration class has its own complaints
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise unreadable(folder / (gguf or "config.json"), f"'{reason}'") from error
    config._attn_implementation = None
    config._experts_implementation = None
    return config


def class_of(config: Any, *, gguf: bool) -> Any:
    """Return the class to build: the one the configuration names, else the headless one."""
    import transformers

    for name in config.architectures or []:
        kind = getattr(transformers, name, None) if isinstance(name, str) else None
        if isinstance(kind, type) and issubclass(kind, transformers.PreTrainedModel):
            fits = getattr(kind, "config_class", None)
            if fits is not None and isinstance(config, fits):
                return kind
    # GGUF files name no class; what has a language model's head was made as one.
    if gguf and type(config) in transformers.MODEL_FOR_CAUSAL_LM_MAPPING:
        return transformers.AutoModelForCausalLM
    return transformers.AutoModel


def _checked(folder: Path, trust: bool) -> dict[str, Any]:
    from transformers import CONFIG_MAPPING

    path = folder / "config.json"
    if not path.is_file():
        raise IsoscopeError(
            f"expected a model in {folder}, got no config.json",
            hint="name the folder that has config.json and model.safetensors, or a GGUF file",
            slug="model-not-found",
        )
    given = read_object(path)
    for key in LAYER_COUNTS:
        if isinstance(given.get(key), int) and given[key] > MOST_LAYERS:
            raise unreadable(path, f"{given[key]} as {key}")
    kind = given.get("model_type")
    remote = _remote(given)
    if kind in CONFIG_MAPPING or (kind is None and not remote):
        return given
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
    return given


def _remote(given: dict[str, Any]) -> bool:
    own = given.get("auto_map")
    return isinstance(own, dict) and "AutoConfig" in own


def _guessed(folder: Path, given: dict[str, Any], say: Callable[[str], None]) -> Any:
    from transformers import CONFIG_MAPPING

    kind = _kind_by_weights(folder, given)
    if kind is None:
        raise IsoscopeError(
            f"expected a model_type in {folder / 'config.json'}, got none",
            hint='add it, for example "model_type": "bert"',
            slug="model-unreadable",
        )
    say(f"config.json names no model_type; its weights are those of {kind}")
    return CONFIG_MAPPING[kind].from_dict({**given, "model_type": kind})


def _kind_by_weights(folder: Path, given: dict[str, Any]) -> str | None:
    names = weight_names(folder)
    for sign, kind in SIGNS.items():
        whose = [name.removesuffix(sign) for name in names if name.endswith(sign)]
        if not whose:
            continue
        if kind != "bert" or whose == ["bert."]:
            return kind
        # roberta has the same names, but counts positions from 2 and has one token type
        return "bert" if whose == [""] and given.get("type_vocab_size") == 2 else None
    return None


def weight_names(folder: Path) -> list[str]:
    """Return the names of the weights in a folder."""
    import torch
    from safetensors import SafetensorError, safe_open

    paths, names = weight_files(folder), list[str]()
    for path in paths:
        try:
            if is_safe(paths):
                with safe_open(path, framework="pt") as file:
                    names += list(file.keys())
            else:
                names += list(torch.load(path, map_location="meta", weights_only=True))
        except pickle.UnpicklingError as error:
            raise refused_pickle(path) from error
        except SafetensorError as error:
            raise unreadable(path, f"'{error}'") from error
    return names

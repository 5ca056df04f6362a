"""The network: weights read into the class of its configuration or random, and checked."""

import pickle
import re
from collections.abc import Callable, Iterable
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import TypedDict

import torch
from torch import nn
from transformers import PretrainedConfig
from transformers.initialization import no_init_weights

from isoscope.capture.model.config import ModelClass, weight_shapes
from isoscope.capture.model.folder import first_line, refused_pickle, unreadable
from isoscope.capture.model.heads import class_with_more
from isoscope.capture.model.load import Takes
from isoscope.capture.model.quiet import quiet
from isoscope.dataclass import dataclass
from isoscope.errors import IsoscopeError
from isoscope.memory import free_memory

# Classes of models have it, Auto classes `from_config`.
FROM_CONFIG = "_from_config"
# transformers replaces functions of torch.nn.init while it loads a model. Of two that load at
# a time, one would put back what the other has replaced, and no model would be initialised.
LOADING = RLock()


class LoadingInfo(TypedDict):
    """What transformers reports after loading."""

    missing_keys: Iterable[str]
    unexpected_keys: Iterable[str]
    mismatched_keys: Iterable[tuple[str, tuple[int, ...], tuple[int, ...]]]  # stored, expected


@dataclass(frozen=True, slots=True)
class Placement:
    """The numbers a network computes with, and where."""

    dtype: torch.dtype
    device: torch.device
    device_map: str | None


def read_trained(
    kind: ModelClass,
    config: PretrainedConfig,
    paths: list[Path],
    where: Placement,
    *,
    gguf: bool,
    trust: bool,
    say: Callable[[str], None],
) -> nn.Module:
    """Return the network with its weights; weights that do not fit are an error."""
    _check_memory(kind, config, where)
    options: dict[str, object] = {
        "config": config,
        "dtype": where.dtype,
        "device_map": where.device_map or {"": where.device},
        "local_files_only": True,
        "weights_only": True,
        "output_loading_info": True,
        "ignore_mismatched_sizes": True,  # the report names them; transformers would not
    }
    if hasattr(kind, "_model_mapping"):  # an Auto class
        options["trust_remote_code"] = trust
    if gguf:
        options["gguf_file"] = paths[0].name
    else:
        options["use_safetensors"] = paths[0].suffix == ".safetensors"
    folder = paths[0].parent
    model, loading = _load(kind, folder, paths, options)
    if not gguf:
        better = class_with_more(
            config,
            model,
            loading["unexpected_keys"],
            partial(weight_shapes, folder),
            lambda other: _build(other, config, where.dtype, trust),
        )
        if better is not None:
            before = type(model).__name__
            del model  # two at once may not fit into memory
            model, loading = _load(better, folder, paths, options)
            say(f"loaded as {type(model).__name__}: {before} uses fewer of the stored weights")
    check_loading(model, body_of(model), loading, folder, say)
    return _freeze(model)


def _load(
    kind: ModelClass, folder: Path, paths: list[Path], options: dict[str, object]
) -> tuple[nn.Module, LoadingInfo]:
    try:
        with LOADING, quiet():
            return kind.from_pretrained(folder, **options)
    except Exception as error:  # files break in as many ways as there are readers
        raise _loading_error(error, folder, paths) from error


def build_untrained(
    kind: ModelClass, config: PretrainedConfig, where: Placement, *, trust: bool, seed: int
) -> nn.Module:
    """Return the same network with random weights, the same for one seed in every dtype."""
    _check_memory(kind, config, where)
    try:
        with LOADING, torch.random.fork_rng(), quiet():
            torch.manual_seed(seed)
            model = _build(kind, config, torch.float32, trust).to(where.dtype)
    except Exception as error:  # sizes that do not fit, a class without random weights
        name = getattr(config, "model_type", "") or type(config).__name__
        raise unreadable(f"the configuration of {name}", f"'{first_line(error)}'") from error
    if where.device_map is None:
        return _freeze(model.to(where.device))
    from accelerate import dispatch_model, infer_auto_device_map

    if where.device_map in ("auto", "balanced", "balanced_low_0", "sequential"):
        keep = getattr(model, "_no_split_modules", None)
        places = infer_auto_device_map(model, no_split_module_classes=list(keep or []))
        return _freeze(dispatch_model(model, places))
    return _freeze(model.to(where.device_map))


def sha_of_weights(model: nn.Module) -> str:
    """Return the SHA-256 of all weights, one after the other in order of name."""
    digest = sha256()
    for name, tensor in sorted(model.state_dict().items()):
        flat = tensor.detach().cpu().contiguous().flatten()
        digest.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        digest.update(memoryview(flat.view(torch.uint8).numpy()))
    return digest.hexdigest()


def _build(
    kind: ModelClass, config: PretrainedConfig, dtype: torch.dtype, trust: bool
) -> nn.Module:
    with LOADING:
        if hasattr(kind, "_model_mapping"):
            return kind.from_config(config, dtype=dtype, trust_remote_code=trust)
        return getattr(kind, FROM_CONFIG)(config, dtype=dtype)


def _freeze(model: nn.Module) -> nn.Module:
    return model.eval().requires_grad_(False)


def _check_memory(kind: ModelClass, config: PretrainedConfig, where: Placement) -> None:
    if where.device_map is not None or where.device.type != "cpu":
        return
    try:
        # no weights have memory here, so that none is drawn: half of the time, or more
        with LOADING, quiet(), no_init_weights(), torch.device("meta"):
            shell = _build(kind, config, where.dtype, trust=False)
    except Exception:  # code of its own, or a class that needs real tensors: no figure
        return
    need = sum(tensor.nbytes for tensor in shell.parameters())
    free = free_memory()
    if need > free:
        raise IsoscopeError(
            f"{type(shell).__name__} needs at least {need / 2**30:.1f} GiB of memory, "
            f"got {free / 2**30:.1f} GiB free",
            hint="take a smaller dtype, such as bfloat16, or spread it with --device-map auto",
            slug="model-memory",
        )


def _loading_error(error: Exception, folder: Path, paths: list[Path]) -> IsoscopeError:
    if isinstance(error, pickle.UnpicklingError) and paths[0].suffix == ".bin":
        return refused_pickle(paths[0])
    if isinstance(error, ImportError):
        return IsoscopeError(
            f"cannot load {folder} with the packages installed: {first_line(error)}",
            hint="install the package named, or take weights that are not quantised",
            slug="model-unreadable",
        )
    return unreadable(folder, f"'{first_line(error)}'")


# Parts of a body that no block reads: many checkpoints leave them out, and they are no site.
UNREAD = {"pooler", "masked_spec_embed", "mask_token", "mask_emb"}


def check_loading(
    model: nn.Module,
    body: nn.Module,
    loading: LoadingInfo,
    folder: Path,
    say: Callable[[str], None],
) -> None:
    """Raise where blocks would run on weights that were not read; report other oddities."""
    wrong = sorted(loading["mismatched_keys"])
    if wrong:
        name, stored, expected = wrong[0]
        raise IsoscopeError(
            f"expected shape {tuple(expected)} for {name} in {folder}, got {tuple(stored)}",
            hint=f"config and weights do not belong together ({len(wrong)} differ in shape)",
            slug="model-weights-mismatch",
        )
    missing = set(loading["missing_keys"])
    needed = sorted(missing & _names_of(body, model))
    if needed:
        raise IsoscopeError(
            f"expected all weights of {type(model).__name__} in {folder}, got none for "
            f"{shorten(needed)}",
            hint="the config belongs to other weights, or a part of them was not copied",
            slug="model-weights-missing",
        )
    extra = set(loading["unexpected_keys"])
    numbered = {_numberless(name) for name in model.state_dict() if re.search(r"\.\d+\.", name)}
    layers = sorted(name for name in extra if _numberless(name) in numbered)
    if layers:
        raise IsoscopeError(
            f"expected the weights of {type(model).__name__} in {folder}, got more of them "
            f"than its config has places for: {shorten(layers)}",
            hint="the config says fewer layers than the weights have; get the two together",
            slug="model-weights-mismatch",
        )
    if missing:
        say(f"warning: random weights for {shorten(sorted(missing))}, which are not stored")
    if extra:
        say(f"note: not used, as the model has no such part: {shorten(sorted(extra))}")


def shorten(names: Iterable[str]) -> str:
    """Return the first three names and how many more there are."""
    first, *_ = listed = list(names)
    shown = ", ".join([first, *listed[1:3]])
    return shown + (f" and {len(listed) - 3} more" if len(listed) > 3 else "")


def _names_of(body: nn.Module, model: nn.Module) -> set[str]:
    """Return the names, as the model has them, of what the blocks of its body read."""
    inside = {id(tensor) for tensor in (*body.parameters(), *body.buffers())}
    named = (*model.named_parameters(), *model.named_buffers())
    return {
        name
        for name, tensor in named
        if id(tensor) in inside and not UNREAD & set(name.split("."))
    }


def _numberless(name: str) -> str:
    return re.sub(r"(?<=\.)\d+(?=\.)", "#", name)


def body_of(model: nn.Module) -> nn.Module:
    """Return what to call to run the blocks without the head.

    Most classes with a head keep the headless model inside. T5 and its kin do not: their
    stacks stand beside the head, so a headless model is put around the very same modules.
    Hooks on them observe both.
    """
    base = getattr(model, "base_model", model)
    if base is not model:
        return base
    return _around(model) or model


def takes(model: nn.Module) -> Takes:
    """Return the kind of input of a model, by the name of its first argument."""
    name = str(getattr(model, "main_input_name", "input_ids"))
    if name == "pixel_values":
        return "image"
    return "audio" if name in ("input_values", "input_features") else "text"


def _around(model: nn.Module) -> nn.Module | None:
    from transformers import MODEL_MAPPING

    config = getattr(model, "config", None)
    kind = None if config is None else MODEL_MAPPING.get(type(config), None)
    kind = kind[0] if isinstance(kind, tuple) else kind
    if kind is None or isinstance(model, kind):
        return None
    with torch.device("meta"):
        shell: nn.Module = kind(config)
    ours = dict(model.named_children())
    for name, child in shell.named_children():
        if type(ours.get(name)) is not type(child):
            return None
        setattr(shell, name, ours[name])
    left = [*shell.parameters(recurse=False), *shell.buffers(recurse=False)]
    return None if left else shell.eval()


DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def find_dtype(name: str | None) -> torch.dtype:
    """Return the dtype of a name; without one float32, whatever the file stores.

    Readings of one model are then the same numbers whatever its file stores.
    """
    if name is not None and name not in DTYPES:
        raise IsoscopeError(
            f"expected a dtype of {', '.join(DTYPES)}, got {name!r}",
            hint="leave it out for float32",
            slug="dtype-unknown",
        )
    return DTYPES[name or "float32"]


def find_device(name: str) -> torch.device:
    """Return the device of a name, if this machine has it."""
    try:
        device = torch.device(name)
        if device.type == "meta":
            raise RuntimeError("a device without memory")
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise IsoscopeError(
            f"expected a device of this machine, got {name!r}",
            hint=f"take one of {', '.join(devices())}",
            slug="device-unknown",
        ) from error
    return device


def devices() -> list[str]:
    """Return the names of the devices torch can use here."""
    found = ["cpu"]
    found += [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    return found + (["mps"] if torch.backends.mps.is_available() else [])

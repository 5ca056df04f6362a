"""The network itself: weights read into the class of its configuration, or drawn at random."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from torch import nn

from isoscope.capture.model.body import body_of
from isoscope.capture.model.files import unreadable
from isoscope.capture.model.quiet import quiet
from isoscope.capture.model.report import judged
from isoscope.capture.model.weights import refused_pickle
from isoscope.errors import IsoscopeError


@dataclass(frozen=True, slots=True)
class Where:
    """The numbers a network computes with, and where."""

    dtype: torch.dtype
    device: torch.device
    device_map: str | None


def trained(
    kind: Any,
    config: Any,
    paths: list[Path],
    where: Where,
    *,
    gguf: bool,
    trust: bool,
    say: Callable[[str], None],
) -> nn.Module:
    """Return the network with its weights; those that do not fit never pass in silence."""
    _fits_in_memory(kind, config, where)
    options: dict[str, Any] = {
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
    try:
        with quiet():
            model, loading = kind.from_pretrained(folder, **options)
    except Exception as error:  # files break in as many ways as there are readers
        raise _failed(error, folder, paths) from error
    judged(model, body_of(model), loading, folder, say)
    return _resting(model)


def untrained(kind: Any, config: Any, where: Where, *, trust: bool, seed: int) -> nn.Module:
    """Return the same network with random weights, the same for one seed in every dtype."""
    _fits_in_memory(kind, config, where)
    with torch.random.fork_rng(), quiet():
        torch.manual_seed(seed)
        model = _built(kind, config, torch.float32, trust).to(where.dtype)
    if where.device_map is None:
        return _resting(model.to(where.device))
    from accelerate import dispatch_model, infer_auto_device_map

    if where.device_map in ("auto", "balanced", "balanced_low_0", "sequential"):
        keep = getattr(model, "_no_split_modules", None)
        places = infer_auto_device_map(model, no_split_module_classes=list(keep or []))
        return _resting(dispatch_model(model, places))
    return _resting(model.to(where.device_map))


def sha_of_weights(model: nn.Module) -> str:
    """Return the SHA-256 of all weights, one after the other in order of name."""
    digest = sha256()
    for name, tensor in sorted(model.state_dict().items()):
        flat = tensor.detach().cpu().contiguous().flatten()
        digest.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        digest.update(memoryview(flat.view(torch.uint8).numpy()))
    return digest.hexdigest()


def _built(kind: Any, config: Any, dtype: torch.dtype, trust: bool) -> nn.Module:
    if hasattr(kind, "_model_mapping"):
        return kind.from_config(config, dtype=dtype, trust_remote_code=trust)
    return kind._from_config(config, dtype=dtype)


def _resting(model: nn.Module) -> nn.Module:
    return model.eval().requires_grad_(False)


def _fits_in_memory(kind: Any, config: Any, where: Where) -> None:
    if where.device_map is not None or where.device.type != "cpu":
        return
    import psutil

    try:
        with quiet(), torch.device("meta"):
            shell = _built(kind, config, where.dtype, trust=False)
    except Exception:  # code of its own, or a class that needs real tensors: no figure
        return
    need = sum(tensor.nbytes for tensor in shell.parameters())
    free = psutil.virtual_memory().available
    if need > free:
        raise IsoscopeError(
            f"{type(shell).__name__} needs at least {need / 2**30:.1f} GiB of memory, "
            f"got {free / 2**30:.1f} GiB free",
            hint="take a smaller dtype, such as bfloat16, or spread it with --device-map auto",
            slug="model-memory",
        )


def _failed(error: Exception, folder: Path, paths: list[Path]) -> IsoscopeError:
    if isinstance(error, pickle.UnpicklingError) and paths[0].suffix == ".bin":
        return refused_pickle(paths[0])
    if isinstance(error, ImportError):
        reason = str(error).strip().split("\n")[0]
        return IsoscopeError(
            f"cannot load {folder} with the packages installed: {reason}",
            hint="install the package named, or take weights that are not quantised",
            slug="model-unreadable",
        )
    reason = str(error).strip().split("\n")[0] or type(error).__name__
    return unreadable(folder, f"'{reason}'")

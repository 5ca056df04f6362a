"""Who a model is: fingerprints of everything that could change a reading."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import nn

from isoscope.capture.model.files import sha_of_files
from isoscope.capture.model.place import Place
from isoscope.capture.model.tokens import tokenizer_files


def identity_of(
    model: nn.Module,
    place: Place,
    folder: Path,
    *,
    sha: str,
    dtype: torch.dtype,
    seed: int | None,
    has_tokenizer: bool,
) -> dict[str, Any]:
    """Return the fingerprints as plain values; `seed` is that of random weights, if any."""
    return {
        "model": place.name,
        "sha": sha,
        "revision": place.commit,
        "config": _sha_of_config(model, place, folder),
        "tokenizer": _sha_of_tokenizer(place, folder) if has_tokenizer else None,
        "dtype": str(dtype).removeprefix("torch."),
        "architecture": type(model).__name__,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "untrained": seed is not None,
        "seed": seed,
        "versions": {"torch": str(torch.__version__), "transformers": transformers.__version__},
    }


def _sha_of_config(model: Any, place: Place, folder: Path) -> str:
    if place.gguf is None:
        return sha_of_files([folder / "config.json"])
    given = {**model.config.to_dict(), "transformers_version": None}
    return sha256(json.dumps(given, sort_keys=True, default=str).encode()).hexdigest()


def _sha_of_tokenizer(place: Place, folder: Path) -> str | None:
    files = [folder / place.gguf] if place.gguf else tokenizer_files(folder)
    return sha_of_files(files) if files else None

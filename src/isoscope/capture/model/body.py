"""The part of a model that runs its blocks, and the kind of input it takes."""

from typing import Any

import torch
from torch import nn

from isoscope.capture.model.loaded import Takes


def body_of(model: nn.Module) -> nn.Module:
    """Return what to call to run the blocks without the head.

    Most classes with a head keep the headless model inside. T5 and its kin do not: their
    stacks stand beside the head, so a headless model is put around the very same modules.
    Hooks on them hear both.
    """
    base = getattr(model, "base_model", model)
    if base is not model:
        return base
    return _around(model) or model


def takes(model: nn.Module) -> Takes:
    """Return the kind of input of a model, told by the name of its first argument."""
    name = str(getattr(model, "main_input_name", "input_ids"))
    if name == "pixel_values":
        return "image"
    return "audio" if name in ("input_values", "input_features") else "text"


def _around(model: nn.Module) -> nn.Module | None:
    from transformers import MODEL_MAPPING

    config: Any = getattr(model, "config", None)
    kind = MODEL_MAPPING.get(type(config), None)
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
